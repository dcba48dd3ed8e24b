#include "compute/comm/nccl_library.h"

#include <dlfcn.h>

namespace tandem::comm {
namespace {

// Fills one function pointer; false and the symbol's name if it is missing.
template <typename Function>
bool find(void* library, const char* symbol, Function& function, std::string& missing) {
  void* address = ::dlsym(library, symbol);
  if (address == nullptr) {
    missing = symbol;
    return false;
  }
  function = reinterpret_cast<Function>(address);
  return true;
}

}  // namespace

Result<NcclLibrary> load_nccl(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return Status(
        StatusCode::kUnavailable,
        fmt::format("NCCL: {} does not load: {}; install NCCL 2.28 or newer, or choose the "
                    "staged collectives",
                    file, reason == nullptr ? "unknown" : reason));
  }
  NcclLibrary nccl;
  int (*get_version)(int*) = nullptr;
  std::string missing;
  const bool complete = find(library, "ncclGetVersion", get_version, missing) &&
                        find(library, "ncclGetUniqueId", nccl.get_unique_id, missing) &&
                        find(library, "ncclCommInitRank", nccl.init_rank, missing) &&
                        find(library, "ncclAllReduce", nccl.all_reduce, missing) &&
                        find(library, "ncclAllGather", nccl.all_gather, missing) &&
                        find(library, "ncclCommGetAsyncError", nccl.async_error, missing) &&
                        find(library, "ncclCommAbort", nccl.abort, missing) &&
                        find(library, "ncclGetErrorString", nccl.error_text, missing) &&
                        find(library, "ncclGetLastError", nccl.last_error, missing);
  if (!complete || get_version(&nccl.version) != NcclLibrary::kSuccess) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("NCCL: {} lacks {}; expected NCCL 2.13 or newer", file,
                              missing.empty() ? "a version" : missing));
  }
  return nccl;
}

}  // namespace tandem::comm
