#include "runtime/backends/toolchain.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
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

TEST_CASE("object cache: an object that changed on disk is none, wherever it changed") {
  auto folder = apl::TemporaryFolder::make("/tmp");
  REQUIRE(folder);
  const std::string object(1000, 'x');
  ObjectCache(folder->path()).add("key", object);
  const std::string file = files_in(folder->path()).front();
  std::ostringstream before;
  before << std::ifstream(file, std::ios::binary).rdbuf();
  for (std::size_t at = 0; at < before.str().size(); at += 7) {
    std::string damaged = before.str();
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
    CHECK_FALSE(ObjectCache(folder->path()).find("key"));
  }
  std::ofstream(file, std::ios::binary | std::ios::trunc) << before.str() << "more";
  CHECK_FALSE(ObjectCache(folder->path()).find("key"));
  std::ofstream(file, std::ios::binary | std::ios::trunc) << before.str();
  CHECK(ObjectCache(folder->path()).find("key") == object);
}

TEST_CASE("a tool that fails: whose fault it is") {
  struct Row {
    std::vector<std::string> command;
    apl::Code code;
    const char* words;
  };
  const Row rows[] = {
      {{"/nowhere/cc"}, apl::Code::unsupported_backend, "No such file or directory"},
      {{"/bin/sh", "-c", "echo refused; exit 1"}, apl::Code::bug_internal, "refused"},
      {{"/bin/sh", "-c", "echo 'x.s: No space left on device'; exit 1"}, apl::Code::machine_io, "No space left"},
      {{"/bin/sh", "-c", "echo 'ld: Too many open files'; exit 1"}, apl::Code::machine_resources, "Too many open"},
      {{"/bin/sh", "-c", "kill -9 $$"}, apl::Code::machine_resources, "was ended: Killed"},
  };
  for (const Row& row : rows) {
    const auto said = apl::run_tool(row.command);
    REQUIRE_FALSE(said);
    CHECK(said.error().code == row.code);
    CHECK_MESSAGE(said.error().message.find(row.words) != std::string::npos, said.error().message);
  }
}

TEST_CASE("a compiler that refuses: our text is at fault only if an empty one is taken") {
  auto folder = apl::TemporaryFolder::make("/tmp");
  REQUIRE(folder);
  const apl::Workplace workplace{folder->path(), "", nullptr, {}};
  apl::Compilation compilation;
  compilation.command = {"cc", "-shared", "-fPIC"};
  compilation.files = {{"text.c", "int f(void) { return nothing; }"}};
  compilation.output = "text.so";
  const auto ours = apl::compile_shared(compilation, workplace);
  REQUIRE_FALSE(ours);
  CHECK(ours.error().code == apl::Code::bug_internal);
  compilation.files = {{"text.c", "int f(void) { return 1; }"}};
  CHECK(apl::compile_shared(compilation, workplace));
  compilation.command.emplace_back("--no-such-flag");
  const auto theirs = apl::compile_shared(compilation, workplace);
  REQUIRE_FALSE(theirs);
  CHECK(theirs.error().code == apl::Code::unsupported_backend);
  CHECK(files_in(folder->path()).empty());
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
