// What tests of numbers of threads have in common.
#include <dirent.h>
#include <stdio.h>

// Of this process. Those of a parallel region or of a pool stay for the next one.
static int count_threads(void) {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  for (struct dirent* one; folder && (one = readdir(folder)) != NULL;) count += one->d_name[0] != '.';
  if (folder) closedir(folder);
  return count;
}

static int is_wrong(const char* what, int wanted, int is) {
  if (is != wanted) printf("%s: %d, not %d\n", what, is, wanted);
  return is != wanted;
}
