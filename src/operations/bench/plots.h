// SVG plots of a benchmark run.
#pragma once

#include <string>
#include <vector>

#include "operations/bench/statistics.h"

namespace tandem::bench {

struct PlotPoint {
  double x = 0;
  Summary y;  // median with its interval
};

struct PlotSeries {
  std::string label;
  std::vector<PlotPoint> points;  // by x
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<PlotSeries> series;
};

// One SVG element: x on a base-2 logarithmic scale, y from zero, medians joined by lines, intervals
// as whiskers, a legend. "" if no series has a point.
std::string to_svg(const Plot& plot);

// Text that is safe in HTML and SVG.
std::string escape_markup(std::string_view text);

}  // namespace tandem::bench
