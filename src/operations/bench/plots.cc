#include "operations/bench/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace tandem::bench {
namespace {

constexpr double kLeft = 64;
constexpr double kTop = 14;
constexpr double kWidth = 460;
constexpr double kHeight = 220;
constexpr double kLegend = 210;  // room for it at the right
constexpr int kYTicks = 4;
constexpr std::array<const char*, 8> kColours = {"#4269d0", "#d1495b", "#3a8f5c", "#b5762a",
                                                 "#7d4fb3", "#2b8a9e", "#8c564b", "#555555"};

// Maps figures to places on the page.
struct Axes {
  double x_low = 0;  // log2
  double x_high = 1;
  double y_high = 1;

  double x(double value) const {
    const double share =
        x_high > x_low ? (std::log2(std::max(value, 1.0)) - x_low) / (x_high - x_low) : 0.5;
    return kLeft + kWidth * share;
  }
  double y(double value) const { return kTop + kHeight * (1 - value / y_high); }
};

Axes find_axes(const Plot& plot) {
  Axes axes{1e9, -1e9, 0};
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      const double place = std::log2(std::max(point.x, 1.0));
      axes.x_low = std::min(axes.x_low, place);
      axes.x_high = std::max(axes.x_high, place);
      axes.y_high = std::max({axes.y_high, point.y.high, point.y.median});
    }
  }
  axes.y_high = axes.y_high > 0 ? axes.y_high * 1.05 : 1;
  return axes;
}

std::string grid(const Plot& plot, const Axes& axes) {
  std::string out;
  for (int i = 0; i <= kYTicks; ++i) {
    const double value = axes.y_high * i / kYTicks;
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" class=\"g\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.3g}</text>\n",
        kLeft, kLeft + kWidth, axes.y(value), kLeft - 6, axes.y(value) + 4, value);
  }
  std::set<double> places;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      places.insert(point.x);
    }
  }
  for (const double place : places) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n",
                       axes.x(place), kTop + kHeight + 16, place);
  }
  return out + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                           kLeft + kWidth / 2, kTop + kHeight + 34, escape_markup(plot.x_label));
}

std::string curve(const PlotSeries& series, const Axes& axes, const char* colour) {
  std::string path;
  std::string marks;
  for (const PlotPoint& point : series.points) {
    const double x = axes.x(point.x);
    path += fmt::format("{:.1f},{:.1f} ", x, axes.y(point.y.median));
    marks += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>"
        "<circle cx=\"{0:.1f}\" cy=\"{4:.1f}\" r=\"3\" fill=\"{3}\"><title>{5}: {6:.4g} [{7:.4g}, "
        "{8:.4g}], n = {9}</title></circle>\n",
        x, axes.y(point.y.low), axes.y(point.y.high), colour, axes.y(point.y.median),
        escape_markup(series.label), point.y.median, point.y.low, point.y.high, point.y.n);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n{}", path, colour,
                     marks);
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string to_svg(const Plot& plot) {
  const Axes axes = find_axes(plot);
  if (axes.x_low > axes.x_high) {
    return {};
  }
  std::string out = fmt::format(
      "<figure><figcaption>{}, {}</figcaption>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\">\n",
      escape_markup(plot.title), escape_markup(plot.y_label), kLeft + kWidth + kLegend,
      kTop + kHeight + 44, kLeft + kWidth + kLegend);
  out += grid(plot, axes);
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    out += curve(plot.series[i], axes, colour);
    const double y = kTop + 14 + 18 * static_cast<double>(i);
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" "
        "y=\"{}\">{}</text>\n",
        kLeft + kWidth + 14, y - 10, colour, kLeft + kWidth + 32, y,
        escape_markup(plot.series[i].label));
  }
  return out + "</svg></figure>\n";
}

}  // namespace tandem::bench
