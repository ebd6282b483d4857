// Work in a process of its own, so that a crash or an endless loop is a failure like others.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace apl::random_tests {

struct Message {
  char kind = 0;           // 'b': this begins now
  std::size_t number = 0;  // of the program
  std::string where, text;
};
using Send = std::function<void(const Message&)>;

// The messages that `work` sent but for those of beginnings. If it crashes, or sends nothing for `patience_s` seconds
// (ten times as long where the last beginning ends with "compiling"), the last one is of kind 'f' and says so.
std::vector<Message> in_child(const std::function<void(const Send&)>& work, int patience_s,
                              const std::function<bool()>& stop);

}  // namespace apl::random_tests
