#include "ir/read_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

namespace apl {
namespace {

TEST_CASE("a file is read whole, or there is a reason why not") {
  const auto folder = std::filesystem::temp_directory_path() / "apl-read-file-test";
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "file").string();
  const std::string bytes("a\0b\n\xff", 5);
  std::ofstream(file, std::ios::binary) << bytes;
  const auto text = read_bytes(file);
  REQUIRE(text);
  CHECK(*text == bytes);
  CHECK(*read_bytes("/dev/null") == "");
  CHECK(read_bytes("/proc/self/status")->find("Name:") == 0);  // says that it has no bytes
  struct Row {
    std::string name, why;
  };
  const Row rows[] = {{folder.string(), "Is a directory"},
                      {file + ".none", "No such file or directory"},
                      {file + "/below", "Not a directory"},
                      {"", "No such file or directory"},
                      {"/dev/zero", "a device that gives more than 64 MiB"}};
  for (const Row& row : rows) {
    const auto nothing = read_bytes(row.name);
    REQUIRE_FALSE(nothing);
    CHECK(nothing.error().code == Code::command_no_such_file);
    CHECK(nothing.error().message == "cannot read " + row.name + ": " + row.why);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace apl
