#include "codegen/runtime/toolchain.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace {

using apl::ObjectCache;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().string());
  return names;
}

}  // namespace

TEST_CASE("object cache: what one process keeps another one finds, by the whole key") {
  auto folder = apl::TemporaryFolder::make("/tmp");
  REQUIRE(folder);
  const std::string path = folder->path() + "/below/it";
  ObjectCache(path).add("text\nand flags", std::string("bytes\0more", 10));
  const ObjectCache second(path);
  CHECK(second.find("text\nand flags") == std::string("bytes\0more", 10));
  CHECK_FALSE(second.find("text\nand flag"));
  CHECK_FALSE(ObjectCache().find("text\nand flags"));
}

TEST_CASE("object cache: a damaged file is none, and a folder that cannot be written is no error") {
  auto folder = apl::TemporaryFolder::make("/tmp");
  REQUIRE(folder);
  ObjectCache(folder->path()).add("key", "object");
  REQUIRE(files_in(folder->path()).size() == 1);
  std::ofstream(files_in(folder->path()).front(), std::ios::trunc) << "apl-object 3\nke";
  CHECK_FALSE(ObjectCache(folder->path()).find("key"));
  std::ofstream(folder->path() + "/file") << "x";
  ObjectCache nowhere(folder->path() + "/file/below");
  nowhere.add("key", "object");
  CHECK(nowhere.find("key") == "object");
}

TEST_CASE("object cache: writers and readers at the same time see whole objects") {
  auto folder = apl::TemporaryFolder::make("/tmp");
  REQUIRE(folder);
  const std::string object(100000, 'x');
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 50; ++k) {
        const auto found = ObjectCache(folder->path()).find("key");
        if (found && *found != object) ++wrong[t];
        ObjectCache(folder->path()).add("key", object);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
  CHECK(files_in(folder->path()).size() == 1);
}
