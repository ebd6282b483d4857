#include "frontend/syntax/lexer.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace apl::frontend {

namespace {

// One letter a kind, then the text: `i:x o:+ n:1`.
std::string shown(std::string_view text) {
  std::string result;
  for (const Token& token : lex(text)) {
    if (token.kind == TokenKind::end) break;
    static constexpr std::string_view kLetters = "$!icnqsokp[";
    if (!result.empty()) result += " ";
    result += kLetters[static_cast<std::size_t>(token.kind)];
    result += ":" + (token.qualifier.empty() ? "" : token.qualifier + ".") + token.text;
  }
  return result;
}

Token only(std::string_view text) { return lex(text).front(); }

}  // namespace

TEST_CASE("the longest match is taken") {
  CHECK(shown("x' _y t_x letx let") == "i:x' i:_y i:t_x i:letx k:let");
  CHECK(shown("|> || |>> <|> ++ >>=") == "o:|> o:|| o:|>> o:<|> o:++ o:>>=");
  CHECK(shown("= == => -> ->> ! !=") == "p:= o:== o:=> p:-> o:->> p:! o:!=");
  CHECK(shown("0..<n a...b c..d") == "n:0 p:..< i:n i:a p:... i:b i:c p:.. i:d");
  CHECK(shown("x:>t x:t") == "i:x p::> i:t i:x p:: i:t");
}

TEST_CASE("a bracket right after a name, a parenthesis or a bracket is an index") {
  CHECK(shown("f [x]") == "i:f p:[ i:x p:]");
  CHECK(shown("a[x]") == "i:a [:[ i:x p:]");
  CHECK(shown("(a)[0][1]") == "p:( i:a p:) [:[ n:0 p:] [:[ n:1 p:]");
  CHECK(shown("#[unsafe] x") == "p:#[ i:unsafe p:] i:x");
}

TEST_CASE("qualified operators are one token, qualified names are not") {
  CHECK(shown("i32.+ f32.*x") == "o:i32.+ o:f32.* i:x");
  CHECK(shown("f32.sum x.0.1") == "i:f32 p:. i:sum i:x p:. n:0 p:. n:1");
  CHECK(shown("a.b.<= c") == "o:a.b.<= i:c");
}

TEST_CASE("comments run to the end of the line") {
  CHECK(shown("x -- y\nz --") == "i:x i:z");
  CHECK(shown("x --> y") == "i:x");
}

TEST_CASE("numbers") {
  struct Case {
    std::string text;
    bool is_float;
    double value;
    std::string suffix;
  };
  for (const Case& c : std::vector<Case>{{"42", false, 42, ""},
                                         {"1_000i64", false, 1000, "i64"},
                                         {"0xFFu8", false, 255, "u8"},
                                         {"0b101", false, 5, ""},
                                         {"0rXIV", false, 14, ""},
                                         {"3f32", true, 3, "f32"},
                                         {"1.5", true, 1.5, ""},
                                         {"1e3", true, 1000, ""},
                                         {"2.5e-1f64", true, 0.25, "f64"},
                                         {"0x1.8p1f32", true, 3, "f32"},
                                         {"0x1f32", false, 0x1f32, ""},
                                         {"1.0f16", true, 1, "f16"}}) {
    CAPTURE(c.text);
    const Token token = only(c.text);
    REQUIRE(token.kind == TokenKind::number);
    CHECK(token.text == c.text);
    CHECK(token.number.is_float == c.is_float);
    CHECK((c.is_float ? token.number.real : static_cast<double>(token.number.integer)) == c.value);
    CHECK((token.number.suffix ? std::string(to_text(*token.number.suffix)) : "") == c.suffix);
  }
  CHECK(only("18446744073709551615").number.integer == UINT64_MAX);
  CHECK(only("18446744073709551616").number.overflow);
  CHECK(shown("1.x 1i3") == "n:1 p:. i:x n:1 i:i3");
}

TEST_CASE("characters, strings and type parameters do not get mixed up") {
  CHECK(only("'a'").number.integer == 'a');
  CHECK(only("'\\n'").number.integer == '\n');
  CHECK(only("'\\955'").number.integer == 955);
  CHECK(only("'\xCE\xBB'").number.integer == 955);
  CHECK(shown("'a 'b") == "p:' i:a p:' i:b");
  CHECK(shown("'^a '~b") == "p:'^ i:a p:'~ i:b");
  CHECK(only("\"a\\\"b\\n\"").text == "a\"b\n");
}

TEST_CASE("escapes are a character, a code point in digits, or an error at their place") {
  CHECK(only(R"("\n\t\r\a\b\f\v\\\"\'")").text == "\n\t\r\a\b\f\v\\\"'");
  CHECK(only(R"("\65\x42\o103 \955")").text == "ABC \xCE\xBB");
  CHECK(only(R"("\1114111")").text == "\xF4\x8F\xBF\xBF");
  CHECK(only(R"('\\')").number.integer == '\\');
  CHECK(only(R"('\'')").number.integer == '\'');
  CHECK(shown(R"("a\qb" x)") == "!:unknown escape '\\q' i:x");
  CHECK(only(R"("a\qb\w")").location == Location{1, 3, 1, 4});  // the first
  CHECK(shown(R"('\q' x)") == "!:unknown escape '\\q' i:x");
  CHECK(only(R"('\q')").location == Location{1, 2, 1, 3});
  CHECK(shown(R"("\1114112" x)") == "!:unknown escape '\\1114112' i:x");
  CHECK(shown(R"("\xg" x)") == "!:unknown escape '\\x' i:x");
  CHECK(shown("\"\\\xCE\xBB\" x") == "!:unknown escape '\\\xCE\xBB' i:x");
  CHECK(only("\"a\\q").text == "this string has no end on its line");
  CHECK(only("\"a\\q").location == Location{1, 1, 1, 4});
  CHECK(only("\"a\\").text == "this string has no end on its line");
}

TEST_CASE("what is no token is an error token, and the rest is still read") {
  CHECK(shown("x @ y") == "i:x !:this character means nothing here i:y");
  CHECK(shown("x \xCE\xBB y") == "i:x !:this character means nothing here i:y");
  CHECK(shown("\"abc\ny") == "!:this string has no end on its line i:y");
}

TEST_CASE("places count lines and columns from 1 and include the last column") {
  const std::vector<Token> tokens = lex("ab\n  cde +");
  CHECK(tokens[0].location == Location{1, 1, 1, 2});
  CHECK(tokens[1].location == Location{2, 3, 2, 5});
  CHECK(tokens[2].location == Location{2, 7, 2, 7});
  CHECK(tokens[3].location.line == 2);
}

}  // namespace apl::frontend
