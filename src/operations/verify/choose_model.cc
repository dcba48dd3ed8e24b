#include "operations/verify/choose_model.h"

namespace tandem::verify {

Status choose_model(ApiClient& client, const std::string& named) {
  client.set_model(named);
  TANDEM_ASSIGN(const ApiReply reply, client.get("/v1/models"));
  if (!named.empty()) {
    return ok_status();
  }
  const json::Value* data = json::find(reply.json, "data");
  if (data == nullptr || !data->is_array() || data->get_array().empty() ||
      !data->get_array().front().is_object()) {
    return failed_precondition("GET /v1/models names no model; give one with --model. Got: {}",
                               reply.brief());
  }
  TANDEM_ASSIGN(std::string id,
                json::get_string(data->get_array().front().get_object(), "id", "data[0]."));
  client.set_model(std::move(id));
  return ok_status();
}

}  // namespace tandem::verify
