#include "operations/verify/gates.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

Status check_models(GateContext& context) {
  TANDEM_ASSIGN(const ApiReply reply, context.client().get("/v1/models"));
  context.check(reply.status == 200, "catalog.models.status", "200", reply.brief());
  const json::Value* data = at(reply.json, "data");
  if (!context.check(data != nullptr && data->is_array(), "catalog.models.list",
                     "a list under data", reply.brief())) {
    return ok_status();
  }
  int found = 0;
  for (const json::Value& entry : data->get_array()) {
    found += text_at(entry, "id") == context.model() ? 1 : 0;
  }
  context.check_equal("catalog.models.once", "1", std::to_string(found));
  TANDEM_ASSIGN(const ApiReply one, context.client().get("/v1/models/" + context.model()));
  context.check(one.status == 200 && text_at(one.json, "id") == context.model(),
                "catalog.models.by_id", "200 and the same id", one.brief());
  return ok_status();
}

Status check_health(GateContext& context) {
  TANDEM_ASSIGN(const ApiReply reply, context.client().get("/health"));
  context.check(reply.status == 200, "catalog.health.status", "200", reply.brief());
  const json::Value* ranks = at(reply.json, "ranks");
  if (ranks == nullptr || !ranks->is_array()) {
    context.value("ranks", "not reported by this server");
    return ok_status();
  }
  for (const json::Value& rank : ranks->get_array()) {
    const json::Value* alive = at(rank, "alive");
    context.check(alive != nullptr && alive->is_bool() && alive->get_bool(), "catalog.health.ranks",
                  "every rank alive", json::dump(rank));
  }
  return ok_status();
}

void check_error(GateContext& context, const ApiReply& reply, int status, std::string_view name) {
  const bool shaped = !text_at(reply.json, "error.message").empty();
  context.check(reply.status == status && shaped, name,
                fmt::format("{} and a JSON body with error.message", status), reply.brief());
}

Status check_errors(GateContext& context) {
  ApiClient& client = context.client();
  TANDEM_ASSIGN(const ApiReply broken, client.send("POST", "/v1/chat/completions", "{\"model\": "));
  check_error(context, broken, 400, "catalog.errors.broken_json");
  TANDEM_ASSIGN(const ApiReply no_messages,
                client.post("/v1/chat/completions", {{"model", context.model()}}));
  check_error(context, no_messages, 400, "catalog.errors.no_messages");
  const json::Array messages{json::Object{{"role", "user"}, {"content", "hi"}}};
  TANDEM_ASSIGN(
      const ApiReply unknown,
      client.post("/v1/chat/completions", {{"model", "no-such-model"}, {"messages", messages}}));
  check_error(context, unknown, 404, "catalog.errors.unknown_model");
  TANDEM_ASSIGN(const ApiReply hot, client.post("/v1/chat/completions", {{"model", context.model()},
                                                                         {"messages", messages},
                                                                         {"temperature", "hot"}}));
  check_error(context, hot, 400, "catalog.errors.wrong_type");
  context.check(hot.body.find("temperature") != std::string::npos, "catalog.errors.names_the_field",
                "the message names temperature", hot.brief());
  TANDEM_ASSIGN(const ApiReply nowhere, client.get("/v1/nowhere"));
  check_error(context, nowhere, 404, "catalog.errors.unknown_path");
  return ok_status();
}

}  // namespace

void add_catalog_gates(std::vector<Gate>& gates) {
  gates.push_back({"catalog.models", "The model is listed exactly once", true, check_models});
  gates.push_back(
      {"catalog.health", "Health is green and every rank is alive", true, check_health});
  gates.push_back(
      {"catalog.errors", "Bad input gets a JSON error that names it", true, check_errors});
}

}  // namespace tandem::verify
