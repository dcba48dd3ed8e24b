// The two recorded machines of tests/cluster/trees and a config that fits them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "operations/cluster/checks.h"

namespace tandem::cluster {

inline std::string file_text(const std::string& path) {
  std::ifstream file(TANDEM_SOURCE_DIR "/" + path);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

inline RecordedSystem recorded(const std::string& name) {
  return RecordedSystem::parse(file_text("tests/cluster/trees/" + name + ".tree")).value();
}

inline ClusterConfig spark_config() {
  ClusterConfig config;
  config.model = "/models/v4";
  config.memory_gib = 100;
  config.head.address = "192.168.100.1";
  config.head.interface = "enp1s0f1np1";
  config.worker.ssh = "spark2";
  config.worker.address = "192.168.100.2";
  config.worker.interface = "enp1s0f0np0";
  return config;
}

inline CommandResult prints(std::string text, int exit_code = 0) {
  CommandResult result;
  result.exit_code = exit_code;
  result.out = std::move(text);
  return result;
}

// Both machines under test, healthy until a test changes one thing.
struct Pair {
  ClusterConfig config = spark_config();
  RecordedSystem head_system = recorded("head");
  RecordedSystem worker_system = recorded("worker");
};

// The finding with this id on this node; fails the test if there is none.
inline Finding find(const Findings& findings, const std::string& id, const std::string& node) {
  for (const Finding& finding : findings) {
    if (finding.id == id && finding.node == node) {
      return finding;
    }
  }
  ADD_FAILURE() << "no finding " << id << " on " << node;
  return {};
}

}  // namespace tandem::cluster
