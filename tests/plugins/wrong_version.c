// A plug-in of another version of the interface: the first fields are those of every version.
struct plugin {
  unsigned api_version;
  const char *build, *name, *version;
};
const struct plugin* apl_pass_plugin(void) {
  static const struct plugin kPlugin = {99, "g++ 99", "wrong-version", "1"};
  return &kPlugin;
}
