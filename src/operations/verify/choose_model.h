// Which model a run asks for.
#pragma once

#include <string>

#include "operations/verify/api_client.h"

namespace tandem::verify {

// Sets the client's model: the named one, or the first that the server lists.
// ERRORS: kFailedPrecondition if none is listed; those of the request.
Status choose_model(ApiClient& client, const std::string& named);

}  // namespace tandem::verify
