// The types at a program's border, as Futhark's C API has them: scalars, arrays of scalars, and opaque types for all
// else, which are a few scalars and arrays.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "ir/sparse_soa.h"

namespace apl::library {

struct ApiType {
  enum class Kind : std::uint8_t { scalar, array, opaque };
  Kind kind = Kind::scalar;
  ScalarType element = ScalarType::unit;  // of scalars and arrays
  std::size_t rank = 0;
  std::string name;                    // "[][]f32", "(i32, [](f32, bool))", or what the source calls it
  std::string c_name;                  // "f32_2d", "opaque_tup2_i32_f32": what the C API's names have in them
  std::vector<const ApiType*> values;  // of an opaque type: scalars and arrays
  struct Field {
    std::string name;
    const ApiType* type;
    std::size_t first;   // of its values
    std::string c_name;  // what the C API's names have in them
  };
  std::vector<Field> fields;  // of a tuple or a record; of an array of such, arrays of the elements' fields
  // A constructor of a sum type, whose number is the first value. A part of the payload is a field without a name;
  // `first` is where its places begin.
  struct Variant {
    std::string name;
    std::string c_name;  // what the C API's names have in them
    std::vector<Field> payload;
    std::vector<std::size_t> places;  // which of the type's values the payload is kept in
  };
  std::vector<Variant> variants;
  const ApiType* item = nullptr;  // of an array whose elements are opaque: theirs
  std::size_t outer = 0;          // and how many dims it has of them
  std::string structure;          // what it is made of, whatever it is called
  std::vector<SoaField> soa;      // of a sparse operand: what its values are

  std::size_t value_count() const { return kind == Kind::opaque ? values.size() : 1; }
  bool is_record() const { return !fields.empty() && item == nullptr; }
};

// Each type once, parts before what is made of them.
class ApiTypes {
 public:
  const ApiType* leaf(ScalarType element, std::size_t rank);
  // What a type's text in the source says. `names` are what the source calls types, by place: "" is the type or its
  // elements, ".0.x" the field `x` of its field `0`, "[]" behind one an array as a whole. nullptr if the text does not
  // describe values of the types `flat`.
  using Names = std::map<std::string, std::string>;
  const ApiType* parse(std::string_view text, const std::vector<const ApiType*>& flat, const Names& names);
  // The sparse operand of these elements, with all arrays that were wanted.
  const ApiType* sparse(ScalarType element);
  void want(const SparseSoa& soa);
  // Of some values about which nothing is known.
  const ApiType* tuple(const std::vector<const ApiType*>& parts);
  // What an entry is called in C, different for each.
  std::string entry_name(const std::string& name);
  const std::deque<ApiType>& all() const { return types_; }

 private:
  const ApiType* add(ApiType type);
  const ApiType* parse(std::string_view& text, const std::string& place, const Names& names);
  const ApiType* compound(std::vector<ApiType::Field> fields, bool is_tuple, const std::string& known);
  // Past the first `#`; nullptr if that is no sum type.
  const ApiType* sum(std::string_view& text, const std::string& known);
  // `known` is what the source calls the array as a whole, or "".
  const ApiType* array_of(const ApiType& element, std::size_t rank, const std::string& known = {});
  // Of an opaque type whose parts are known: its name, in the source or else what it is made of.
  const ApiType* named(ApiType type, const std::string& structure, const std::string& known);

  std::deque<ApiType> types_;
  std::map<std::string, const ApiType*> by_name_;
  std::set<std::string> c_names_;
  std::set<std::string> projections_, entries_;
  std::map<ScalarType, std::set<SoaField>> wanted_;
};

struct ApiEntry {
  std::string name;
  std::string c_name;  // what the C API's names have in them
  struct Input {
    std::string name;
    const ApiType* type;
    std::vector<std::size_t> picks;  // of a sparse operand: which of the type's values the entry takes
  };
  std::vector<Input> inputs;
  const ApiType* output;
};

// After `types` has all structs of arrays that there are.
ApiEntry api_entry(const Function& function, ApiTypes& types);

// C's type of a scalar in the API.
std::string api_scalar(ScalarType type);
// "APL_F32"
std::string type_constant(ScalarType type);

}  // namespace apl::library
