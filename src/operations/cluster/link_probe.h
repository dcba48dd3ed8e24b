// Measures the fabric between the two machines with our own program on both: round trips of small
// messages, then four TCP streams for a fixed time. The worker's side is `tandem agent --probe`.
#pragma once

#include <cstdint>
#include <string>

#include "foundation/base/status.h"
#include "operations/cluster/cluster_config.h"

namespace tandem::cluster {

struct LinkMeasure {
  double gigabytes_per_s = 0;
  double round_trip_us = 0;  // median
};

// Head: starts the worker's side over ssh, connects from the head's fabric address.
// ERRORS: kUnavailable naming both addresses and what failed, within 10 s.
Result<LinkMeasure> measure_link(const ClusterConfig& config);

// Worker: listens on address:port, answers one measurement and ends. Prints nothing.
Status serve_link_probe(const std::string& address, std::int64_t port);

}  // namespace tandem::cluster
