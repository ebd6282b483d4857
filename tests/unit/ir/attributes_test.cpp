// Attributes as values, and those that are declared.
#include "ir/attributes.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "ir/print.h"
#include "ir/verify.h"
#include "programs.h"

namespace apl::test {

TEST_CASE("attributes: what is set is what is read") {
  const std::vector<Attribute> all = {make_attribute(attribute::sparse, "A", std::nullopt),
                                      make_attribute(attribute::sparse_product, "B", attribute::SparseProduct::sddmm),
                                      make_attribute(attribute::constant, attribute::Names{"A", "B"}),
                                      make_attribute(attribute::chunks)};
  CHECK(find_attribute(all, attribute::sparse) ==
        std::tuple<std::string, std::optional<attribute::SparseResult>>("A", std::nullopt));
  CHECK(find_attribute(all, attribute::sparse_product) ==
        std::tuple<std::string, attribute::SparseProduct>("B", attribute::SparseProduct::sddmm));
  CHECK(find_attribute(all, attribute::constant) == std::tuple<attribute::Names>(attribute::Names{"A", "B"}));
  CHECK(find_attribute(all, attribute::chunks).has_value());
  CHECK_FALSE(find_attribute(all, attribute::interleaved).has_value());
  CHECK(has_attribute(all, attribute::sparse));
  CHECK_FALSE(has_attribute(all, attribute::untiled));
}

TEST_CASE("attributes: arguments of other types, too many and too few are none") {
  const auto reads = [](std::vector<std::string> arguments, auto key) {
    return read_attribute({std::string(key.name), std::move(arguments)}, key).has_value();
  };
  CHECK(reads({"A"}, attribute::sparse));
  CHECK(reads({"A", "result"}, attribute::sparse));
  CHECK_FALSE(reads({"A", "results"}, attribute::sparse));
  CHECK_FALSE(reads({"A", "result", "B"}, attribute::sparse));
  CHECK_FALSE(reads({}, attribute::constant));
  CHECK_FALSE(reads({"1"}, attribute::chunks));
}

TEST_CASE("attributes: the verifier knows where they stand and what they take") {
  struct Case {
    Attribute attribute;
    bool of_function;
    const char* wrong;  // "": nothing
  };
  for (const Case& c : {
           Case{{"chunks", {"1"}}, false, "the attribute `chunks` takes no arguments, not (1)"},
           Case{{"sparse_product", {"A", "spmv"}}, false, "takes (NAME, spmm or sddmm), not (A, spmv)"},
           Case{{"sparse", {"A"}}, false, "the attribute `sparse` is one of functions"},
           Case{{"noinline", {}}, true, ""},
           Case{{"noinline", {}}, false, ""},
           Case{{"mylab_skew", {"1", "b"}}, false, ""},
       }) {
    Program p;
    Value n = p.size("n");
    Value xs = p.param("xs", i32s({n}));
    Module module = p.body([&](Builder& b) { return std::vector<Operand>{b.let("ys", Copy{xs})}; });
    Function function = *module.functions.front();
    if (c.of_function) {
      function.attributes = {c.attribute};
    } else {
      Body body = *function.body;
      body.stms.front().attributes = {c.attribute};
      function.body = std::make_shared<const Body>(std::move(body));
    }
    module.functions.front() = std::make_shared<const Function>(std::move(function));
    std::string said;
    for (const Diagnostic& broken : verify(module)) said += broken.message + "\n";
    CAPTURE(said);
    CHECK((std::string_view(c.wrong).empty() ? said.empty() : said.find(c.wrong) != std::string::npos));
  }
}

TEST_CASE("attributes: entries keep parameters in any storage type") {
  int found = 0;
  for (const std::string_view text : {
#define APL_SCALAR(name, NAME, text, ...) std::string_view(text),
#include "ir/scalar_types.def"
       }) {
    CAPTURE(std::string(text));
    const AttributeInfo* info = find_attribute_info(text);
    CHECK((info != nullptr) == is_storage(*scalar_type_from_text(text)));
    if (info == nullptr) continue;
    ++found;
    CHECK(info->is_users());
    CHECK(info->place == AttributePlace::entry);
    CHECK(info->fits({"A", "B"}));
    CHECK_FALSE(info->fits({}));
  }
  CHECK(found > 0);
}

TEST_CASE("attributes: each is declared once, and documented") {
  std::string text;
  for (const char* page : {"/docs/language.md", "/docs/ir.md"}) {
    std::ifstream file(std::string(APL_SOURCE_DIR) + page);
    REQUIRE(file);
    std::stringstream all;
    all << file.rdbuf();
    text += all.str();
  }
  std::set<std::string_view> names;
  for (const AttributeInfo& info : declared_attributes()) {
    CAPTURE(info.name);
    CHECK(names.insert(info.name).second);
    CHECK((text.find(fmt::format("`{}`", info.name)) != std::string::npos ||
           text.find(fmt::format("`{}(", info.name)) != std::string::npos));
    if (!info.is_users()) CHECK(similar_attribute(info.name) != info.name);
  }
  CHECK(similar_attribute("no_tilling") == "no_tiling");
  CHECK(similar_attribute("sprase") == "sparse");
}

}  // namespace apl::test
