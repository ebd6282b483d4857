#include "suite/values.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "runtime/backends/toolchain.h"

namespace {

using apl::HostValue;
using apl::Scalar;
using apl::ScalarType;
using apl::suite::difference;
using apl::suite::generate_value;
using apl::suite::random_value;

std::vector<HostValue> parsed_values(const std::string& text) {
  auto parsed = apl::parse_values(text);
  REQUIRE(parsed);
  return std::move(*parsed);
}

std::string packed(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 100, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

TEST_CASE("comparison: what is the same") {
  const std::pair<const char*, const char*> same[] = {
      {"1 [2, 3]", "1 [2, 3]"},
      {"1.0f32", "1.0019f32"},
      {"f32.nan", "f32.nan"},
      {"f64.inf", "f64.inf"},
      {"[1000.0, 3.0]", "[1000.0, 4.9]"},  // within 0.002 of the array's largest element
      {"empty([0][2]i32)", "empty([0][2]i32)"},
      {"-0.0f32", "0.0f32"},
      {"[f32.inf, 0.0]", "[f32.inf, 0.001]"},
  };
  for (const auto& [got, expected] : same) {
    CAPTURE(got);
    CHECK(difference(parsed_values(got), parsed_values(expected)) == std::nullopt);
  }
}

TEST_CASE("comparison: what differs is said") {
  struct Different {
    const char *got, *expected, *words;
  };
  const Different cases[] = {
      {"1", "2", "1i32, expected 2i32"},
      {"1 2", "1", "2 values, 1 expected"},
      {"1i64", "1i32", "type i64, expected i32"},
      {"[1, 2]", "[1, 2, 3]", "type [2]i32, expected [3]i32"},
      {"empty([0][2]i32)", "empty([0][3]i32)", "type [0][2]i32"},
      {"1.0f32", "1.003f32", "1.0f32, expected 1.003f32"},
      {"[[1, 2], [3, 4]]", "[[1, 2], [3, 5]]", "at [1, 1]: 4i32"},
      {"f32.nan", "1f32", "expected 1.0f32"},
      {"f32.inf", "-f32.inf", "expected -f32.inf"},
      {"1 true", "1 false", "value 1: true"},
      // The largest element counts with its sign.
      {"[-1000.0]", "[-1001.0]", "at [0]"},
  };
  for (const Different& one : cases) {
    CAPTURE(one.got);
    const auto words = difference(parsed_values(one.got), parsed_values(one.expected));
    REQUIRE(words);
    CHECK(words->find(one.words) != std::string::npos);
  }
}

TEST_CASE("random values: the same seed gives the same, in range, and not all alike") {
  const ScalarType types[] = {ScalarType::i8,  ScalarType::i16, ScalarType::i32, ScalarType::i64,
                              ScalarType::u8,  ScalarType::u16, ScalarType::u32, ScalarType::u64,
                              ScalarType::f16, ScalarType::f32, ScalarType::f64, ScalarType::boolean};
  for (ScalarType type : types) {
    CAPTURE(apl::to_text(type));
    const HostValue a = random_value(type, {10, 10}, 1), b = random_value(type, {10, 10}, 1);
    CHECK(a == b);
    CHECK(a != random_value(type, {10, 10}, 2));
    bool low_half = false, high_half = false;
    for (std::int64_t k = 0; k < 100; ++k) {
      const Scalar element = a.at(k);
      if (apl::is_float(type)) {
        CHECK(element.as_float() >= 0);
        CHECK(element.as_float() <= 1);
        (element.as_float() < 0.5 ? low_half : high_half) = true;
      } else if (type == ScalarType::boolean) {
        (element.as_bool() ? high_half : low_half) = true;
      } else {
        (element.bits() >> (apl::bit_width(type) - 1) ? high_half : low_half) = true;
      }
    }
    CHECK(low_half);
    CHECK(high_half);
  }
}

TEST_CASE("random values: the generator is the documented one") {
  // The first number of splitmix64 at seed 1 is 0x910a2dec89025cc1.
  CHECK(random_value(ScalarType::u64, {}, 1).at(0).bits() == 0x910a2dec89025cc1u);
  CHECK(random_value(ScalarType::u32, {}, 1).at(0).bits() == 0x910a2decu);
  CHECK(random_value(ScalarType::i32, {}, 1).at(0).as_int() == 0x910a2decLL - 0x80000000LL);
  CHECK(random_value(ScalarType::f64, {}, 1).at(0).as_float() ==
        static_cast<double>(0x910a2dec89025cc1u >> 11) / 9007199254740992.0);
}

TEST_CASE("random values: bounds are inclusive and reached") {
  const apl::suite::AllBounds bounds{
      {ScalarType::i32, {Scalar::integer(ScalarType::i32, -2), Scalar::integer(ScalarType::i32, 2)}}};
  const HostValue value = random_value(ScalarType::i32, {200}, 1, bounds);
  std::vector<int> seen(5);
  for (std::int64_t k = 0; k < 200; ++k) {
    REQUIRE(value.at(k).as_int() >= -2);
    REQUIRE(value.at(k).as_int() <= 2);
    ++seen[static_cast<std::size_t>(value.at(k).as_int() + 2)];
  }
  for (int count : seen) CHECK(count > 0);
}

TEST_CASE("generated values: types and literals") {
  CHECK(generate_value("[2][3]f32", 1)->shape == std::vector<std::int64_t>{2, 3});
  CHECK(generate_value("bool", 1)->type == ScalarType::boolean);
  CHECK(generate_value("5i64", 1)->to_text() == "5i64");
  CHECK(generate_value("[1,2]", 1)->to_text() == "[1i32, 2i32]");
  CHECK(generate_value("[0]i32", 1)->to_text() == "empty([0]i32)");
  CHECK(!generate_value("[n]i32", 1));
  CHECK(!generate_value("[10]f33", 1));
  CHECK(!generate_value("[4000000000][4000000000]f32", 1));
  auto all = apl::suite::generate_values("[3]i32 i32\n 7i64\t[1, 2]");
  REQUIRE(all);
  REQUIRE(all->size() == 4);
  CHECK((*all)[0].at(0) == (*all)[1].at(0));  // each starts at seed 1
}

TEST_CASE("value files: text, binary, both, packed") {
  auto folder = apl::TemporaryFolder::make("/tmp");
  REQUIRE(folder);
  const std::string file = folder->path() + "/values";
  const std::vector<HostValue> wanted = parsed_values("[1, 2] true empty([0][2]f32) 2.5");
  std::string mixed = wanted[0].to_binary() + "\n" + wanted[1].to_text() + " ";
  mixed += wanted[2].to_binary() + wanted[3].to_binary();
  for (const std::string& text : {mixed, packed(mixed), packed(mixed.substr(0, 5)) + packed(mixed.substr(5))}) {
    std::ofstream(file, std::ios::binary) << text;
    auto read = apl::suite::read_values(file);
    REQUIRE(read);
    CHECK(*read == wanted);
  }
  const std::string whole = packed(mixed);
  std::ofstream(file, std::ios::binary) << whole.substr(0, whole.size() / 2);
  CHECK(!apl::suite::read_values(file));
  CHECK(!apl::suite::read_values(file + ".none"));
  std::ofstream(file, std::ios::binary) << "7 [1.5, 2] 3f64";
  const auto plain = apl::suite::read_values(file, {apl::ScalarType::u8, apl::ScalarType::f32, apl::ScalarType::f32});
  REQUIRE(plain);
  REQUIRE(plain->size() == 3);
  CHECK((*plain)[0].to_text() == "7u8");
  CHECK((*plain)[1].to_text() == "[1.5f32, 2.0f32]");
  CHECK((*plain)[2].to_text() == "3.0f64");
  CHECK(!apl::suite::read_values(folder->path()));
}
