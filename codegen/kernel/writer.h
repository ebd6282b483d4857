// Lines with indentation.
#pragma once

#include <fmt/format.h>

#include <string>

namespace apl {

class Writer {
 public:
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... args) {
    std::string text = fmt::format(format, std::forward<T>(args)...);
    // Preprocessor lines start at the margin, empty lines have no blanks.
    if (!text.empty() && text[0] != '#') out_.append(depth_ * 2, ' ');
    out_ += text;
    out_ += '\n';
  }
  template <class... T>
  void open(fmt::format_string<T...> format, T&&... args) {
    line(format, std::forward<T>(args)...);
    ++depth_;
  }
  template <class... T>
  void close(fmt::format_string<T...> format, T&&... args) {
    --depth_;
    line(format, std::forward<T>(args)...);
  }
  void indent() { ++depth_; }
  void raw(std::string_view text) { out_ += text; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  std::size_t depth_ = 0;
};

}  // namespace apl
