// What a Connection becomes when its client asks for a WebSocket. Internal to serving/http.
#pragma once

#include <boost/beast/core.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl.hpp>
#include <string>

#include "serving/http/connection.h"
#include "serving/http/websocket.h"

namespace tandem::http {

using UpgradeRequest = boost::beast::http::request<boost::beast::http::string_body>;

// Takes the stream over, answers the upgrade and reads messages until the end.
void start_websocket(boost::beast::tcp_stream stream, const ConnectionContext& context,
                     std::string peer, UpgradeRequest request, WebSocketOpen open);
void start_websocket(boost::beast::ssl_stream<boost::beast::tcp_stream> stream,
                     const ConnectionContext& context, std::string peer, UpgradeRequest request,
                     WebSocketOpen open);

}  // namespace tandem::http
