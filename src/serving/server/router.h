// Router: which handler answers a path. Knows every path with and without /v1, with and without a
// slash at the end, and patterns with one {id}.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "serving/http/exchange.h"

namespace tandem::server {

// The request, and what stood in the place of {id}.
struct RouteCall {
  http::ExchangePtr exchange;
  std::string id;
  std::string owner;  // whose key it is; "" without keys
};

using RouteHandler = std::function<void(const RouteCall&)>;

class Router {
 public:
  struct Match {
    const RouteHandler* handler = nullptr;  // nullptr: no such path or method
    std::string id;
    std::string allowed;  // "GET, HEAD": the path's methods, if only the method is wrong
    bool is_public = false;
  };

  // `pattern` without /v1: "/chat/completions", "/responses/{id}/cancel". HEAD comes with GET.
  // `is_public`: answered without a key.
  void add(std::string method, std::string pattern, RouteHandler handler, bool is_public = false);

  Match find(const std::string& method, const std::string& path) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> pattern;
    RouteHandler handler;
    bool is_public;
  };

  std::vector<Route> routes_;
};

}  // namespace tandem::server
