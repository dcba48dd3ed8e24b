// SchemaDocument: one JSON Schema text with everything that refers into it: $ref, $id, $anchor, and
// the schemas that the compiler itself writes (negations, expanded conditionals).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/json/json.h"

namespace tandem::grammar {

// Keywords that only the compiler writes. No JSON text from outside is read with them: the control
// character cannot be part of a user's keyword, see SchemaDocument::create.
namespace internal_keyword {
inline constexpr std::string_view kPointer = "\x01pointer";        // index of another schema
inline constexpr std::string_view kNotPattern = "\x01notPattern";  // string not matching it
inline constexpr std::string_view kNotEnum = "\x01notEnum";        // none of these scalars
inline constexpr std::string_view kNotFormat = "\x01notFormat";
}  // namespace internal_keyword

class SchemaDocument {
 public:
  // Keeps a copy. ERRORS: kInvalidArgument if it is not a schema or uses internal keywords.
  static Result<std::unique_ptr<SchemaDocument>> create(const json::Value& schema);

  const json::Value* root() const { return &root_; }

  // True for drafts 4 to 7, where keywords beside $ref are ignored.
  bool ref_hides_siblings() const { return ref_hides_siblings_; }

  // The schema that `ref`, standing in `from`, points to.
  // ERRORS: kInvalidArgument for a remote reference or one that leads nowhere.
  Result<const json::Value*> resolve(const json::Value* from, std::string_view ref) const;

  // A schema written by the compiler; it lives as long as the document.
  const json::Value* own(json::Value schema);

  // A schema that stands for `schema` inside one written by the compiler.
  json::Value pointer_to(const json::Value* schema);

  const json::Value* pointed_at(std::size_t index) const { return pointers_[index]; }

  // Place of a schema in the text; those written by the compiler come last.
  std::size_t order_of(const json::Value* schema) const;

  // The JSON pointer of a schema, "#/properties/a"; "#" for one written by the compiler.
  std::string path_of(const json::Value* schema) const;

 private:
  SchemaDocument() = default;

  Status index(const json::Value& value, const std::string& base, int depth);

  json::Value root_;
  bool ref_hides_siblings_ = false;
  std::unordered_map<std::string, const json::Value*> ids_;      // absolute URI or base#anchor
  std::unordered_map<const json::Value*, std::string> base_of_;  // only inside embedded $ids
  std::unordered_map<const json::Value*, std::size_t> order_;
  std::deque<json::Value> owned_;
  std::vector<const json::Value*> pointers_;
};

}  // namespace tandem::grammar
