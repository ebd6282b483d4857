// A plug-in of this version, built by another compiler.
struct plugin {
  unsigned api_version;
  const char *build, *name, *version;
};
const struct plugin* apl_pass_plugin(void) {
  static const struct plugin kPlugin = {2, "another compiler 3, libother", "wrong-compiler", "1"};
  return &kPlugin;
}
