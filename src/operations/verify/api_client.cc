#include "operations/verify/api_client.h"

#include <utility>

namespace tandem::verify {

std::string shorten(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) {
    return std::string(text);
  }
  std::size_t cut = limit;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) {
    --cut;
  }
  return fmt::format("{}... ({} more bytes)", text.substr(0, cut), text.size() - cut);
}

std::string ApiReply::brief() const {
  return fmt::format("{} {}", status, shorten(body));
}

std::string StreamReply::brief() const {
  const std::size_t tail = raw.size() > 600 ? raw.size() - 600 : 0;
  return fmt::format("{} {} events, ending: {}{}", status, events.size(), raw.substr(tail),
                     transport.ok() ? "" : " [" + transport.to_string() + "]");
}

net::HttpRequest ApiClient::make_request(const std::string& method, const std::string& target,
                                         std::string body) {
  last_request_ = fmt::format("{} {} {}", method, target, shorten(body));
  net::HttpRequest request;
  request.method = method;
  request.target = target;
  request.idle_timeout_ms = timeout_ms_;
  request.cancel = cancel_;
  if (!api_key_.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + api_key_);
  }
  if (!body.empty()) {
    request.headers.emplace_back("Content-Type", "application/json");
  }
  request.body = std::move(body);
  return request;
}

Result<ApiReply> ApiClient::send(const std::string& method, const std::string& target,
                                 const std::string& body) {
  TANDEM_ASSIGN(const net::HttpResponse response,
                net::http_fetch(url_, make_request(method, target, body)));
  ApiReply reply;
  reply.status = response.status;
  reply.content_type = response.header("content-type");
  reply.body = response.body;
  auto parsed = json::parse(response.body);
  reply.is_json = parsed.ok();
  if (parsed.ok()) {
    reply.json = std::move(parsed).value();
  }
  return reply;
}

Result<ApiReply> ApiClient::get(const std::string& target) {
  return send("GET", target, "");
}

Result<ApiReply> ApiClient::post(const std::string& target, const json::Object& body) {
  return send("POST", target, json::dump(body));
}

StreamReply ApiClient::stream(const std::string& target, const json::Object& body,
                              const std::function<bool(const net::SseEvent&)>& on_event) {
  StreamReply reply;
  net::SseParser parser;
  const auto take = [&](std::string_view piece) {
    reply.raw += piece;
    for (net::SseEvent& event : parser.feed(piece)) {
      reply.events.push_back(event);
      if (on_event != nullptr && !on_event(event)) {
        return false;
      }
    }
    return true;
  };
  const auto response = net::http_fetch(url_, make_request("POST", target, json::dump(body)), take);
  reply.transport = response.status();
  if (response.ok()) {
    reply.status = response->status;
    reply.content_type = response->header("content-type");
  }
  reply.ended_inside_event = parser.has_partial();
  return reply;
}

}  // namespace tandem::verify
