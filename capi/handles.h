// What callers of the C API get wrong: null pointers, and objects that were freed or are of another kind.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "ir/diagnostic.h"

namespace apl::capi {

// What an object that callers hold begins with. It goes with the object: a handle that is used later is seen for what
// it is, as long as nothing else got the memory.
template <std::uint32_t number>
class Mark {
 public:
  Mark() = default;
  Mark(const Mark& /*other*/) noexcept {}  // each object has its own
  Mark& operator=(const Mark&) = delete;
  ~Mark() { number_ = 0; }
  bool is_there() const { return number_ == number; }

 private:
  volatile std::uint32_t number_ = number;  // volatile: compilers leave out what is stored in an object that ends
};

template <class Handle>
bool is_live(const Handle* handle) {
  return handle != nullptr && handle->mark.is_there();
}

// An argument of a function of the API, by its name there.
struct Given {
  template <class T>
  Given(const char* name, const T* pointer) : name(name), is_fine(pointer != nullptr) {
    if constexpr (requires { pointer->mark; }) is_fine = is_live(pointer), is_handle = true;
  }
  template <class Result, class... Arguments>
  Given(const char* name, Result (*function)(Arguments...)) : name(name), is_fine(function != nullptr) {}

  const char* name;
  bool is_fine = true, is_handle = false;
};

inline Diagnostic bad_argument(std::string message) {
  return make_error(Code::command_bad_argument, {}, std::move(message));
}

// That all are there. command.bad-argument.
inline Status check_given(std::initializer_list<Given> all) {
  for (const Given& given : all)
    if (!given.is_fine)
      return bad_argument(given.is_handle ? fmt::format("`{}` is null, was freed or is no such object", given.name)
                                          : fmt::format("`{}` is null", given.name));
  return Unit{};
}

}  // namespace apl::capi
