#include "serving/server/router.h"

#include <optional>
#include <utility>

namespace tandem::server {
namespace {

std::vector<std::string> segments_of(const std::string& path) {
  std::vector<std::string> segments;
  std::size_t at = 0;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) {
      segments.push_back(path.substr(at, end - at));
    }
    at = end + 1;
  }
  if (!segments.empty() && segments.front() == "v1") {
    segments.erase(segments.begin());
  }
  return segments;
}

// The text in the place of {id} ("" if there is none), or nothing if the path does not match.
std::optional<std::string> match(const std::vector<std::string>& pattern,
                                 const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) {
    return std::nullopt;
  }
  std::string id;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == "{id}") {
      id = path[i];
    } else if (pattern[i] != path[i]) {
      return std::nullopt;
    }
  }
  return id;
}

bool accepts(const std::string& route_method, const std::string& method) {
  return route_method == method || (route_method == "GET" && method == "HEAD");
}

}  // namespace

void Router::add(std::string method, std::string pattern, RouteHandler handler, bool is_public) {
  routes_.push_back({std::move(method), segments_of(pattern), std::move(handler), is_public});
}

Router::Match Router::find(const std::string& method, const std::string& path) const {
  const std::vector<std::string> segments = segments_of(path);
  Match result;
  for (const Route& route : routes_) {
    auto id = match(route.pattern, segments);
    if (!id) {
      continue;
    }
    if (accepts(route.method, method)) {
      result.handler = &route.handler;
      result.id = std::move(*id);
      result.is_public = route.is_public;
      return result;
    }
    result.allowed += (result.allowed.empty() ? "" : ", ") + route.method;
    result.allowed += route.method == "GET" ? ", HEAD" : "";
  }
  return result;
}

}  // namespace tandem::server
