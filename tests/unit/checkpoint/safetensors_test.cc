// Headers that break the format are refused with the tensor's name; none is trusted.
#include "model/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string message_of(const std::string& json) {
  const Result<ShardHeader> header = parse_header(json);
  return header.ok() ? "" : header.status().message();
}

TEST(Safetensors, ReadsTensorsInOrderOfTheirData) {
  const Result<ShardHeader> header =
      parse_header(R"({"__metadata__":{"format":"pt"},)"
                   R"("b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},)"
                   R"("a":{"dtype":"BF16","shape":[3,1],"data_offsets":[0,6]},)"
                   R"("odd":{"dtype":"U16","shape":[],"data_offsets":[14,16]}}   )");
  ASSERT_TRUE(header.ok()) << header.status().message();
  ASSERT_EQ(header->tensors.size(), 3U);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].dtype, tensor::DType::kBf16);
  EXPECT_THAT(header->tensors[0].shape, ElementsAre(3, 1));
  EXPECT_EQ(header->tensors[1].begin, 6U);
  EXPECT_FALSE(header->tensors[2].dtype.has_value());
  EXPECT_EQ(header->data_bytes, 16U);
}

TEST(Safetensors, RefusesHolesAndOverlaps) {
  EXPECT_THAT(message_of(R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[1,3]}})"),
              HasSubstr("tensor a: begins at 1, the tensor before it ends at 0"));
  EXPECT_THAT(message_of(R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"I8","shape":[2],"data_offsets":[1,3]}})"),
              HasSubstr("tensor b: begins at 1, the tensor before it ends at 2"));
}

TEST(Safetensors, RefusesSizesThatDoNotFit) {
  EXPECT_THAT(message_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})"),
              HasSubstr("tensor a: 4 bytes of data, its dtype and shape make 8"));
  EXPECT_THAT(message_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],)"
                         R"("data_offsets":[0,0]}})"),
              HasSubstr("more than fits"));
  EXPECT_THAT(message_of(R"({"a":{"dtype":"I8","shape":[-1],"data_offsets":[0,0]}})"),
              HasSubstr("shape has -1"));
  EXPECT_THAT(message_of(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[1,0]}})"),
              HasSubstr("expected 0 <= begin <= end"));
  EXPECT_THAT(message_of(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1,2]}})"),
              HasSubstr("two offsets"));
  EXPECT_THAT(message_of(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})"),
              HasSubstr("dtype is missing or no string"));
  EXPECT_THAT(message_of(R"({"a":{"dtype":"I8","shape":[1,1,1,1,1,1,1,1,1],)"
                         R"("data_offsets":[0,1]}})"),
              HasSubstr("at most 8"));
  EXPECT_THAT(message_of("[]"), HasSubstr("expected an object"));
}

TEST(Safetensors, RefusesOneNameTwiceHoweverItIsSpelled) {
  EXPECT_THAT(message_of(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},)"
                         R"("\u0061":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})"),
              HasSubstr("tensor a: twice"));
}

TEST(Safetensors, DuplicateKeysKeepsToItsDepth) {
  const char* text = R"({"x":{"k":1,"k":2},"y":{"k":"k:"},"x":["k","k"]})";
  EXPECT_THAT(duplicate_keys(text, 1), ElementsAre("x"));
  EXPECT_THAT(duplicate_keys(text, 2), ElementsAre("k", "k"));
}

TEST(Safetensors, BoundsTheHeaderLength) {
  const std::string huge("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 8);
  EXPECT_FALSE(parse_header_length(huge, 1 << 20).ok());
  const std::string hundred("\x64\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(parse_header_length(hundred, 108).value(), 100U);
  EXPECT_FALSE(parse_header_length(hundred, 107).ok());
  EXPECT_FALSE(parse_header_length("\x64", 1).ok());
}

TEST(Safetensors, WritesWhatItReads) {
  ShardTensor tensor;
  tensor.name = "layers.0.\"odd\"";
  tensor.dtype_word = "F8_E4M3";
  tensor.shape = {2, 3};
  tensor.end = 6;
  const std::string bytes = write_header({tensor});
  EXPECT_EQ(bytes.size() % 8, 0U);
  EXPECT_EQ(parse_header_length(bytes, bytes.size() + 6).value(), bytes.size() - 8);
  const ShardHeader header = parse_header(std::string_view(bytes).substr(8)).value();
  ASSERT_EQ(header.tensors.size(), 1U);
  EXPECT_EQ(header.tensors[0].name, tensor.name);
  EXPECT_EQ(header.data_offset, bytes.size());
}

}  // namespace
}  // namespace tandem::checkpoint
