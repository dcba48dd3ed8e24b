#include "engine/grammar/schema_document.h"

#include <charconv>

namespace tandem::grammar {
namespace {

constexpr int kMaxDepth = 512;

// Splits "uri#fragment".
std::pair<std::string, std::string> split_fragment(std::string_view uri) {
  const std::size_t hash = uri.find('#');
  if (hash == std::string_view::npos) {
    return {std::string(uri), ""};
  }
  return {std::string(uri.substr(0, hash)), std::string(uri.substr(hash + 1))};
}

bool has_scheme(std::string_view uri) {
  const std::size_t colon = uri.find(':');
  return colon != std::string_view::npos && uri.find('/') > colon;
}

// Resolves a reference without fragment against a base (RFC 3986 5.2, as far as schemas need it).
std::string join(const std::string& base, const std::string& ref) {
  if (ref.empty()) {
    return base;
  }
  if (has_scheme(ref) || base.empty()) {
    return ref;
  }
  const std::size_t authority = base.find("//");
  const std::size_t path =
      authority == std::string::npos ? base.find(':') + 1 : base.find('/', authority + 2);
  if (ref[0] == '/') {
    return path == std::string::npos ? base + ref : base.substr(0, path) + ref;
  }
  const std::size_t slash = base.rfind('/');
  if (path == std::string::npos) {
    return base + "/" + ref;
  }
  return slash == std::string::npos || slash < path ? base.substr(0, path) + ref
                                                    : base.substr(0, slash + 1) + ref;
}

std::string unescape_pointer(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '%' && i + 2 < token.size()) {
      int value = 0;
      std::from_chars(token.data() + i + 1, token.data() + i + 3, value, 16);
      out.push_back(static_cast<char>(value));
      i += 2;
    } else {
      out.push_back(token[i]);
    }
  }
  std::string plain;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '~' && i + 1 < out.size()) {
      plain.push_back(out[++i] == '1' ? '/' : '~');
    } else {
      plain.push_back(out[i]);
    }
  }
  return plain;
}

const json::Value* follow(const json::Value* at, std::string_view pointer) {
  while (!pointer.empty() && at != nullptr) {
    if (pointer[0] != '/') {
      return nullptr;
    }
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string token = unescape_pointer(pointer.substr(0, end));
    pointer.remove_prefix(end);
    if (at->is_array()) {
      std::size_t i = 0;
      const auto [last, error] = std::from_chars(token.data(), token.data() + token.size(), i);
      const bool number = error == std::errc() && last == token.data() + token.size();
      at = number && i < at->get_array().size() ? &at->get_array()[i] : nullptr;
    } else {
      at = json::find(*at, token);
    }
  }
  return at;
}

bool find_path(const json::Value& at, const json::Value* target, std::string* path) {
  if (&at == target) {
    return true;
  }
  const std::size_t size = path->size();
  if (at.is_object()) {
    for (const auto& member : at.get_object()) {
      *path += "/";
      for (const char c : member.key()) {
        *path += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      }
      if (find_path(member.value(), target, path)) {
        return true;
      }
      path->resize(size);
    }
  } else if (at.is_array()) {
    for (std::size_t i = 0; i < at.get_array().size(); ++i) {
      *path += "/" + std::to_string(i);
      if (find_path(at.get_array()[i], target, path)) {
        return true;
      }
      path->resize(size);
    }
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<SchemaDocument>> SchemaDocument::create(const json::Value& schema) {
  if (!schema.is_object() && !schema.is_bool()) {
    return invalid_argument("a schema is {}; expected an object or a boolean",
                            json::type_name(schema));
  }
  std::unique_ptr<SchemaDocument> out(new SchemaDocument());
  out->root_ = schema;
  const json::Value* dialect = json::find(out->root_, "$schema");
  if (dialect != nullptr && dialect->is_string()) {
    const std::string_view name = dialect->get_string();
    for (const std::string_view old : {"draft-03", "draft-04", "draft-06", "draft-07"}) {
      out->ref_hides_siblings_ |= name.find(old) != std::string_view::npos;
    }
  }
  TANDEM_TRY(out->index(out->root_, "", 0));
  return out;
}

Status SchemaDocument::index(const json::Value& value, const std::string& base, int depth) {
  if (depth > kMaxDepth) {
    return invalid_argument("the schema is nested more than {} levels deep", kMaxDepth);
  }
  if (value.is_array()) {
    for (const json::Value& item : value.get_array()) {
      TANDEM_TRY(index(item, base, depth + 1));
    }
    return ok_status();
  }
  if (!value.is_object()) {
    return ok_status();
  }
  order_.emplace(&value, order_.size());
  std::string here = base;
  // Beside a $ref the older drafts see nothing else, an $id neither.
  const bool id_counts = !ref_hides_siblings_ || json::find(value, "$ref") == nullptr;
  for (const std::string_view word : {"$id", "id"}) {
    const json::Value* id = json::find(value, word);
    if (!id_counts || id == nullptr || !id->is_string()) {
      continue;
    }
    const auto [uri, fragment] = split_fragment(std::string_view(id->get_string()));
    here = join(base, uri);
    if (fragment.empty() || uri.empty() != fragment.empty()) {
      ids_.emplace(fragment.empty() ? here : here + "#" + fragment, &value);
    }
    break;
  }
  for (const std::string_view word : {"$anchor", "$dynamicAnchor"}) {
    const json::Value* anchor = json::find(value, word);
    if (anchor != nullptr && anchor->is_string()) {
      ids_.emplace(here + "#" + std::string(anchor->get_string()), &value);
    }
  }
  if (!here.empty()) {
    base_of_[&value] = here;
  }
  for (const auto& member : value.get_object()) {
    if (!member.key().empty() && member.key()[0] == '\x01') {
      return invalid_argument("a schema key starts with a control character");
    }
    if (member.key() != "enum" && member.key() != "const") {
      TANDEM_TRY(index(member.value(), here, depth + 1));
    }
  }
  return ok_status();
}

Result<const json::Value*> SchemaDocument::resolve(const json::Value* from,
                                                   std::string_view ref) const {
  const auto base = base_of_.find(from);
  const auto [uri, fragment] = split_fragment(ref);
  const std::string absolute = join(base == base_of_.end() ? "" : base->second, uri);
  const json::Value* document = nullptr;
  const auto known = ids_.find(absolute);
  if (known != ids_.end()) {
    document = known->second;
  } else if (uri.empty() && (base == base_of_.end() || ids_.count(absolute) == 0)) {
    document = &root_;
  }
  if (document == nullptr) {
    return invalid_argument("$ref '{}' at {} is outside this schema; only local references work",
                            ref, path_of(from));
  }
  const json::Value* target = nullptr;
  if (fragment.empty() || fragment[0] == '/') {
    target = follow(document, fragment);
    if (target == nullptr && document != &root_ && uri.empty()) {
      target = follow(&root_, fragment);
    }
  } else {
    const auto anchor = ids_.find(absolute + "#" + fragment);
    target = anchor == ids_.end() ? nullptr : anchor->second;
  }
  if (target == nullptr || (!target->is_object() && !target->is_bool())) {
    return invalid_argument("$ref '{}' at {} leads nowhere", ref, path_of(from));
  }
  return target;
}

const json::Value* SchemaDocument::own(json::Value schema) {
  owned_.push_back(std::move(schema));
  return &owned_.back();
}

std::size_t SchemaDocument::order_of(const json::Value* schema) const {
  const auto it = order_.find(schema);
  return it == order_.end() ? order_.size() : it->second;
}

json::Value SchemaDocument::pointer_to(const json::Value* schema) {
  pointers_.push_back(schema);
  json::Object out;
  out[internal_keyword::kPointer] = static_cast<std::uint64_t>(pointers_.size() - 1);
  return out;
}

std::string SchemaDocument::path_of(const json::Value* schema) const {
  std::string path = "#";
  return find_path(root_, schema, &path) ? path : "#";
}

}  // namespace tandem::grammar
