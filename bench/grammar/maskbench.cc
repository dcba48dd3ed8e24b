#include "bench/grammar/maskbench.h"

#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "bench/grammar/schema_order.h"

namespace tandem::grammar {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return not_found("{} cannot be read", path);
  }
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Result<std::string> decompress(const std::string& packed) {
  std::string out;
  std::vector<char> chunk(1 << 20);
  ZSTD_DStream* stream = ZSTD_createDStream();
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::size_t left = 1;
  while (left != 0 && (in.pos < in.size || left == 1)) {
    ZSTD_outBuffer to{chunk.data(), chunk.size(), 0};
    left = ZSTD_decompressStream(stream, &to, &in);
    if (ZSTD_isError(left) != 0) {
      ZSTD_freeDStream(stream);
      return data_loss("not a zstd file: {}", ZSTD_getErrorName(left));
    }
    out.append(chunk.data(), to.pos);
    if (to.pos == 0 && in.pos == in.size) {
      break;
    }
  }
  ZSTD_freeDStream(stream);
  return out;
}

// The bytes that the characters of a byte-level BPE vocabulary stand for.
std::map<std::uint32_t, std::uint8_t> byte_alphabet() {
  std::map<std::uint32_t, std::uint8_t> out;
  std::uint32_t next = 256;
  for (unsigned b = 0; b < 256; ++b) {
    const bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    out[plain ? b : next++] = static_cast<std::uint8_t>(b);
  }
  return out;
}

std::string to_bytes(std::string_view token,
                     const std::map<std::uint32_t, std::uint8_t>& alphabet) {
  std::string out;
  for (std::size_t i = 0; i < token.size();) {
    const auto lead = static_cast<std::uint8_t>(token[i]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : 3;
    std::uint32_t c = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    for (std::size_t k = 1; k < size && i + k < token.size(); ++k) {
      c = (c << 6) | (static_cast<std::uint8_t>(token[i + k]) & 0x3FU);
    }
    const auto byte = alphabet.find(c);
    if (byte == alphabet.end()) {
      return "";
    }
    out.push_back(static_cast<char>(byte->second));
    i += size;
  }
  return out;
}

double micros(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - since)
      .count();
}

// How many bytes are accepted; one more than the text has if it may also end there.
std::size_t accepted_bytes(const GrammarPtr& grammar, const VocabularyPtr& vocabulary,
                           const std::string& text, std::vector<float>* mask_us) {
  std::size_t n_bytes = 0;
  const std::unique_ptr<TokenConstraint> matcher = make_constraint(grammar);
  std::vector<std::uint32_t> mask(vocabulary->mask_words());
  const auto allowed = [&](TokenId token) {
    const auto since = std::chrono::steady_clock::now();
    matcher->fill_mask(mask);
    mask_us->push_back(static_cast<float>(micros(since)));
    return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1U) != 0;
  };
  for (const TokenId token : greedy_tokens(*vocabulary, text)) {
    const bool in_mask = allowed(token);
    const bool accepted = matcher->accept(token);
    if (in_mask != accepted) {
      std::abort();  // the mask and the automaton disagree: nothing measured here would mean a
                     // thing
    }
    if (!accepted) {
      return n_bytes;
    }
    n_bytes += vocabulary->bytes(token).size();
  }
  return n_bytes + (allowed(vocabulary->roles().eos[0]) ? 1 : 0);
}

// The value with its keys in an order that the grammar takes, if one is found.
std::string text_in_accepted_order(const GrammarPtr& grammar, const VocabularyPtr& vocabulary,
                                   const json::Value& value, const json::Value& schema) {
  constexpr int kMaxMoves = 300;
  KeyOrder order(value, schema);
  std::vector<float> unmeasured;
  for (int i = 0; i < kMaxMoves; ++i) {
    const std::size_t n = accepted_bytes(grammar, vocabulary, order.text(), &unmeasured);
    if (n > order.text().size() || !order.move_key_at(n)) {
      break;
    }
  }
  return order.text();
}

}  // namespace

namespace {

MaskbenchCase to_case(std::string name, const json::Value& one) {
  MaskbenchCase test;
  test.name = std::move(name);
  test.schema = *json::find(one, "schema");
  for (const json::Value& instance : json::find(one, "tests")->get_array()) {
    test.instances.push_back(
        {json::find(instance, "valid")->get_bool(), *json::find(instance, "data")});
  }
  return test;
}

// A MaskBench file holds one schema; a file of the JSON-Schema-Test-Suite a list of them.
void add_cases(const std::string& path, const json::Value& file, std::vector<MaskbenchCase>* out) {
  if (file.is_object()) {
    out->push_back(to_case(path.substr(path.rfind('/') + 1), file));
    return;
  }
  const std::size_t folder = path.rfind('/', path.rfind('/') - 1);
  int number = 0;
  for (const json::Value& one : file.get_array()) {
    MaskbenchCase test = to_case(path.substr(folder + 1) + "#" + std::to_string(number++), one);
    // The suite's older drafts say by their folder which rules hold.
    if (test.name.rfind("draft7/", 0) == 0 && test.schema.is_object()) {
      test.schema.get_object().emplace("$schema", "http://json-schema.org/draft-07/schema#");
    }
    out->push_back(std::move(test));
  }
}

}  // namespace

Result<std::vector<MaskbenchCase>> read_maskbench(const std::string& archive) {
  TANDEM_ASSIGN(const std::string packed, read_file(archive));
  TANDEM_ASSIGN(const std::string tar, decompress(packed));
  std::vector<MaskbenchCase> out;
  for (std::size_t at = 0; at + 512 <= tar.size() && tar[at] != '\0';) {
    std::string name(tar.c_str() + at);
    const std::size_t size = std::strtoul(tar.substr(at + 124, 11).c_str(), nullptr, 8);
    const bool regular = tar[at + 156] == '0' || tar[at + 156] == '\0';
    if (regular && name.size() > 5 && name.substr(name.size() - 5) == ".json") {
      json::ParseLimits limits;
      limits.max_depth = 500;
      TANDEM_ASSIGN(const json::Value file,
                    json::parse(std::string_view(tar).substr(at + 512, size), limits));
      name.resize(name.size() - 5);
      add_cases(name, file, &out);
    }
    at += 512 + (size + 511) / 512 * 512;
  }
  std::sort(out.begin(), out.end(),
            [](const MaskbenchCase& a, const MaskbenchCase& b) { return a.name < b.name; });
  return out;
}

Result<VocabularyPtr> read_vocabulary(const std::string& tokenizer_json, int size) {
  TANDEM_ASSIGN(const std::string text, read_file(tokenizer_json));
  TANDEM_ASSIGN(const json::Value file, json::parse(text));
  const std::map<std::uint32_t, std::uint8_t> alphabet = byte_alphabet();
  std::vector<std::string> tokens(static_cast<std::size_t>(size));
  for (const auto& entry : json::find(*json::find(file, "model"), "vocab")->get_object()) {
    tokens[entry.value().to_number<std::size_t>()] = to_bytes(entry.key(), alphabet);
  }
  std::vector<TokenId> special;
  SpecialTokens roles;
  for (const json::Value& added : json::find(file, "added_tokens")->get_array()) {
    special.push_back(json::find(added, "id")->to_number<TokenId>());
    const std::string_view content = json::find(added, "content")->get_string();
    if (content == "<｜end▁of▁sentence｜>") {
      roles.eos = {special.back()};
    } else if (content == "</think>") {
      roles.think_end = special.back();
    }
  }
  // The place of the DSML marker in V4; the V3 vocabulary has no such token.
  roles.dsml = 128825;
  return Vocabulary::create(std::move(tokens), special, roles);
}

VocabularyPtr small_vocabulary() {
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) {
    tokens.emplace_back(1, static_cast<char>(b));
  }
  for (const char* text :
       {"{\"",  "\":", "\": ",    "\",\"", "\", \"", "\"}",      "true", "false", "null", "  ",
        "\n  ", "abc", "name",    "\",",   "]}",     "}}",       "[]",   "{}",    "12",   "123",
        ".5",   "-1",  "é",       "日本",  "\\n",    "\\u00",    "a\"",  "</",    ">\n",  "<",
        "a",    "ab",  "\"a\":1", "\\\"",  " \"",    "\xE6\x97", "\xA5"}) {
    tokens.emplace_back(text);
  }
  tokens.resize(301);
  SpecialTokens roles;
  roles.eos = {300};
  roles.think_end = 299;
  roles.dsml = 298;
  return Vocabulary::create(std::move(tokens), {297}, roles);
}

std::vector<TokenId> greedy_tokens(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<TokenId> out;
  while (!text.empty()) {
    const TokenId token = vocabulary.longest_prefix(text);
    out.push_back(token);
    text.remove_prefix(vocabulary.bytes(token).size());
  }
  return out;
}

Verdict judge(const VocabularyPtr& vocabulary, const MaskbenchCase& test) {
  Verdict out;
  SchemaOptions options;
  options.strict = true;
  const auto since = std::chrono::steady_clock::now();
  const Result<GrammarPtr> grammar = compile_json_schema(vocabulary, test.schema, options);
  out.compile_us = micros(since);
  if (!grammar.ok()) {
    out.category = "refused";
    out.detail = grammar.status().message();
    return out;
  }
  out.category = "pass";
  for (const MaskbenchCase::Instance& instance : test.instances) {
    std::string text = json::dump(instance.data);
    std::size_t n = accepted_bytes(*grammar, vocabulary, text, &out.mask_us);
    if (instance.valid && n <= text.size()) {
      text = text_in_accepted_order(*grammar, vocabulary, instance.data, test.schema);
      n = accepted_bytes(*grammar, vocabulary, text, &out.mask_us);
    }
    const bool accepted = n > text.size();
    if (accepted == instance.valid) {
      continue;
    }
    constexpr std::size_t kContext = 80;
    const std::size_t from = n > kContext ? n - kContext : 0;
    out.detail = accepted ? text.substr(0, 3 * kContext)
                          : text.substr(from, n - from) + " >>> " + text.substr(n, kContext);
    if (!instance.valid) {
      out.category = "false_accept";
      break;
    }
    out.category = "false_reject";
  }
  return out;
}

}  // namespace tandem::grammar
