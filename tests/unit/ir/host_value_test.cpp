#include "ir/host_value.h"

#include <doctest/doctest.h>

namespace {

using apl::HostValue;
using apl::ScalarType;

}  // namespace

TEST_CASE("host value: what is printed reads back to the same value") {
  const HostValue values[] = {
      HostValue::scalar(apl::Scalar::integer(ScalarType::i32, -3)),
      HostValue::scalar(apl::Scalar::boolean(true)),
      HostValue::array(ScalarType::f32, {2, 2}, std::vector<float>{1, 2.5f, -0.0f, 1e-30f}),
      HostValue::array(ScalarType::f64, {1, 3, 1}, std::vector<double>{1e300, 0.1, -7}),
      HostValue::array(ScalarType::u8, {3}, std::vector<std::uint8_t>{0, 7, 255}),
      HostValue::array(ScalarType::i64, {2}, std::vector<std::int64_t>{INT64_MIN, INT64_MAX}),
      HostValue::array(ScalarType::boolean, {2}, std::vector<std::uint8_t>{0, 1}),
      HostValue::zeros(ScalarType::f32, {0, 3}),
      HostValue::zeros(ScalarType::i8, {4, 0}),
  };
  std::string all;
  for (const HostValue& value : values) {
    CAPTURE(value.to_text());
    auto read = apl::parse_values(value.to_text());
    REQUIRE(read);
    REQUIRE(read->size() == 1);
    CHECK((*read)[0] == value);
    all += value.to_text() + "\n";
  }
  auto read = apl::parse_values(all);
  REQUIRE(read);
  CHECK(read->size() == std::size(values));
}

TEST_CASE("host value: printed as Futhark prints") {
  CHECK(HostValue::array(ScalarType::f32, {2, 2}, std::vector<float>{1, 2, 3, 4}).to_text() ==
        "[[1.0f32, 2.0f32], [3.0f32, 4.0f32]]");
  CHECK(HostValue::array(ScalarType::i32, {2}, std::vector<std::int32_t>{1, -2}).to_text() == "[1i32, -2i32]");
  CHECK(HostValue::zeros(ScalarType::f32, {0, 3}).to_text() == "empty([0][3]f32)");
  CHECK(HostValue::zeros(ScalarType::f64, {}).to_text() == "0.0f64");
}

TEST_CASE("host value: other ways to write the same") {
  struct Case {
    std::string text;
    std::string printed;
  };
  for (const Case& c : {Case{"3", "3i32"},
                        {"3.5", "3.5f64"},
                        {"1e3", "1000.0f64"},
                        {"3f32", "3.0f32"},
                        {" -- note\n 1_000i64 ", "1000i64"},
                        {"[1,2,\n3]", "[1i32, 2i32, 3i32]"},
                        {"[1u8, 2, 3]", "[1u8, 2u8, 3u8]"},
                        {"[1f32, 2, 2.5]", "[1.0f32, 2.0f32, 2.5f32]"},
                        {"f32.nan", "f32.nan"},
                        {"-f64.inf", "-f64.inf"},
                        {"bf16.nan", "bf16.nan"},
                        {"[bf16.inf, -bf16.inf]", "[bf16.inf, -bf16.inf]"},
                        {"[true,false]", "[true, false]"},
                        {"0x10i32", "16i32"},
                        {"-0x1F", "-31i32"},
                        {"0b101u8", "5u8"},
                        {"255i8", "-1i8"},
                        {"0xffffi16", "-1i16"},
                        {"1e-309f32", "0.0f32"},
                        {"1e39f32", "f32.inf"},
                        {"[1f32, 0x10]", "[1.0f32, 16.0f32]"},
                        {"\"hi\\n\"", "[104u8, 105u8, 10u8]"},
                        {"\"\"", "empty([0]u8)"},
                        {"[\"ab\", \"cd\"]", "[[97u8, 98u8], [99u8, 100u8]]"},
                        {"[[\"a\"], [\"b\",],]", "[[[97u8]], [[98u8]]]"},
                        {"[\"ab\", [1, 2u8]]", "[[97u8, 98u8], [1u8, 2u8]]"},
                        {"[\"\", \"\"]", "empty([2][0]u8)"},
                        {"[empty([0]i32), empty([0]i32)]", "empty([2][0]i32)"},
                        {"[[empty([0][3]f16)]]", "empty([1][1][0][3]f16)"},
                        {"empty( [0] [2] i32 )", "empty([0][2]i32)"}}) {
    CAPTURE(c.text);
    auto read = apl::parse_values(c.text);
    REQUIRE(read);
    REQUIRE(read->size() == 1);
    CHECK((*read)[0].to_text() == c.printed);
  }
  auto none = apl::parse_values("  -- nothing\n");
  REQUIRE(none);
  CHECK(none->empty());
}

TEST_CASE("host value: what is wrong is said, with its place") {
  struct Case {
    std::string text;
    std::string message;
    std::uint32_t line, column;
  };
  for (const Case& c : {Case{"[[1, 2], [3]]", "a row of 1 elements where the first has 2", 1, 10},
                        {"[1, [2]]", "a row where other rows have a number", 1, 5},
                        {"[[1], 2]", "a number where other rows have a row", 1, 7},
                        {"[1i32,\n 2f32]", "an element of type f32 in an array of i32", 2, 2},
                        {"[1, 2.5]", "`2.5` is no value of type i32", 1, 5},
                        {"[]", "an array without elements is written with its type, such as empty([0]i32)", 1, 1},
                        {"[1, 2", "expected `,` or `]`, found the end", 1, 6},
                        {"[1 2]", "expected `,` or `]`, found `2`", 1, 4},
                        {"1 %", "expected a value, found `%`", 1, 3},
                        {"3x", "`3x` is no value", 1, 1},
                        {"300u8", "`300u8` is no value", 1, 1},
                        {"0x100u8", "`0x100u8` is no value", 1, 1},
                        {"0xzz", "`0xzz` is no value", 1, 1},
                        {"empty([1]i32)", "one size of an array without elements is 0", 1, 10},
                        {"empty([0]x32)", "expected the type of the elements", 1, 10},
                        {"empty([a]i32)", "expected a size", 1, 8},
                        {"\"abc", "a string without an end", 1, 1},
                        {"[\"ab\", \"c\"]", "a row of 1 elements where the first has 2", 1, 8},
                        {"[1, \"c\"]", "a row of 1 dims where other rows have 0", 1, 5},
                        {"[\"c\", 1]", "a number where other rows have a row", 1, 7},
                        {"[[1], \"c\"]", "a row of type u8 in an array of i32", 1, 7},
                        {"[empty([0]i32), empty([0][1]i32)]", "a row of 2 dims where other rows have 1", 1, 17},
                        {"[\"c\", empty([0]u8)]", "a row of 0 elements where the first has 1", 1, 7},
                        {"]", "expected a value, found `]`", 1, 1}}) {
    CAPTURE(c.text);
    auto read = apl::parse_values(c.text);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == apl::Code::run_argument);
    CHECK(read.error().message == c.message);
    CHECK(read.error().location.line == c.line);
    CHECK(read.error().location.column == c.column);
  }
  CHECK_FALSE(apl::parse_values(std::string(100000, '[')));
}

TEST_CASE("integers that their types cannot hold wrap where that is asked for") {
  auto read = apl::parse_values("-271733879u32 [32767i8] -32769i16 0x1ffu8", apl::OutOfRange::wrap);
  REQUIRE(read);
  CHECK((*read)[0].to_text() == "4023233417u32");
  CHECK((*read)[1].to_text() == "[-1i8]");
  CHECK((*read)[2].to_text() == "32767i16");
  CHECK((*read)[3].to_text() == "255u8");
}

TEST_CASE("host value: elements by position") {
  HostValue value = HostValue::zeros(ScalarType::i16, {2, 3});
  CHECK(value.element_count() == 6);
  CHECK(value.rank() == 2);
  value.set(4, apl::Scalar::integer(ScalarType::i16, -5));
  CHECK(value.at(4).as_int() == -5);
  CHECK(value.at(3).as_int() == 0);
  CHECK(value == HostValue::array(ScalarType::i16, {2, 3}, std::vector<std::int16_t>{0, 0, 0, 0, -5, 0}));
}

TEST_CASE("host value: the binary format is Futhark's") {
  const HostValue value = HostValue::array(ScalarType::i16, {1, 2}, std::vector<std::int16_t>{-2, 3});
  const std::string wanted("b\x02\x02 i16\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\xfe\xff\3\0", 7 + 16 + 4);
  CHECK(value.to_binary() == wanted);
  CHECK(HostValue::scalar(apl::Scalar::boolean(true)).to_binary() == std::string("b\x02\0bool\1", 8));
}

TEST_CASE("host value: what is written in binary reads back, mixed with text") {
  const HostValue values[] = {
      HostValue::scalar(apl::Scalar::integer(ScalarType::i32, -3)),
      HostValue::array(ScalarType::f32, {2, 2}, std::vector<float>{1, 2.5f, -0.0f, 1e-30f}),
      HostValue::zeros(ScalarType::f16, {3}),
      HostValue::zeros(ScalarType::u64, {0, 3}),
      HostValue::array(ScalarType::boolean, {2}, std::vector<std::uint8_t>{0, 1}),
  };
  std::string all;
  std::vector<HostValue> wanted;
  for (const HostValue& value : values) {
    all += "-- both\n " + value.to_binary() + value.to_text() + "\n";
    wanted.insert(wanted.end(), 2, value);
  }
  auto read = apl::parse_values(all);
  REQUIRE(read);
  CHECK(*read == wanted);
}

TEST_CASE("host value: damaged binary values are refused") {
  const std::string whole = HostValue::array(ScalarType::i32, {2}, std::vector<std::int32_t>{1, 2}).to_binary();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(!apl::parse_values(whole.substr(0, size)));
  }
  std::string version = whole, type = whole, size = whole, negative = whole;
  version[1] = 3;
  type[4] = 'x';
  size[13] = 0x7f;
  negative[14] = static_cast<char>(0x80);
  for (const std::string& text : {version, type, size, negative}) CHECK(!apl::parse_values(text));
}

TEST_CASE("host value: a comma may follow the last element") {
  CHECK((*apl::parse_values("[[1, 2,], [3, 4], ]"))[0].to_text() == "[[1i32, 2i32], [3i32, 4i32]]");
  CHECK(!apl::parse_values("[,]"));
}

TEST_CASE("host value: numbers without suffix are of the type that is asked for") {
  const std::vector<ScalarType> types = {ScalarType::i64, ScalarType::f32, ScalarType::u8, ScalarType::boolean,
                                         ScalarType::i64};
  auto read = apl::parse_values("-3 2 [1, 2] true 1.5 7", apl::OutOfRange::refuse, types);
  REQUIRE(read);
  std::string text;
  for (const HostValue& value : *read) text += value.to_text() + " ";
  CHECK(text == "-3i64 2.0f32 [1u8, 2u8] true 1.5f64 7i32 ");
  CHECK_FALSE(apl::parse_values("300", apl::OutOfRange::refuse, {ScalarType::u8}));
  CHECK(apl::parse_values("300i32", apl::OutOfRange::refuse, {ScalarType::u8})->front().to_text() == "300i32");
}
