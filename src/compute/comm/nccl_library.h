// NCCL, found at run time: it is no Debian package, and a program without GPUs must start without
// it. Only the few functions that are used, with NCCL's own binary interface (stable since 2.4).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "foundation/base/status.h"

namespace tandem::comm {

struct NcclId {
  char bytes[128];
};

struct NcclLibrary {
  int version = 0;  // 22803 is 2.28.3
  int (*get_unique_id)(NcclId*) = nullptr;
  int (*init_rank)(void** comm, int n_ranks, NcclId id, int rank) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, void* comm,
                    void* stream) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int type, void* comm, void* stream) = nullptr;
  int (*async_error)(void* comm, int* error) = nullptr;
  int (*abort)(void* comm) = nullptr;
  const char* (*error_text)(int) = nullptr;
  const char* (*last_error)(void* comm) = nullptr;

  static constexpr int kFloat32 = 7;
  static constexpr int kSum = 0;
  static constexpr int kSuccess = 0;
  static constexpr int kInProgress = 7;
};

// Loads the library by the name that the dynamic linker resolves, or by path. It stays loaded.
// ERRORS: kUnavailable, naming the file and the linker's reason.
Result<NcclLibrary> load_nccl(const std::string& file = "libnccl.so.2");

}  // namespace tandem::comm
