/* proc.c - what a process has open, and what a shared object exports
 *
 * The host is not dumpable, so only root sees /proc/PID/fd; anybody sees the size of its table,
 * which starts as small as its parent's and doubles with a leak.
 */
#include "config.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "sdk/conform/conform.h"

static long
count_fds (pid_t pid)
{
  char path[64];
  long n = 0;
  DIR *d;

  snprintf (path, sizeof path, "/proc/%d/fd", (int) pid);
  d = opendir (path);
  if (!d)
    return -1;
  for (const struct dirent *e; (e = readdir (d));)
    n += e->d_name[0] != '.';
  closedir (d);
  return n;
}

static void
read_status (pid_t pid, struct proc_has *has, long *fd_size)
{
  char path[64], line[256];
  FILE *f;

  snprintf (path, sizeof path, "/proc/%d/status", (int) pid);
  f = fopen (path, "re");
  if (!f)
    return;
  while (fgets (line, sizeof line, f)) {
    sscanf (line, "Threads: %ld", &has->threads);
    sscanf (line, "FDSize: %ld", fd_size);
    sscanf (line, "VmRSS: %ld", &has->rss_kib);
    sscanf (line, "VmSize: %ld", &has->size_kib);
  }
  fclose (f);
}

/* Parent and group out of /proc/PID/stat; the name in front may hold anything, so from its end. */
static bool
read_stat (const char *pid, int *parent, int *group)
{
  char path[300], text[512];
  const char *end;
  size_t n;
  FILE *f;

  snprintf (path, sizeof path, "/proc/%s/stat", pid);
  f = fopen (path, "re");
  if (!f)
    return false;
  n = fread (text, 1, sizeof text - 1, f);
  fclose (f);
  text[n] = '\0';
  end = strrchr (text, ')');
  return end && sscanf (end + 1, " %*c %d %d", parent, group) == 2;
}

static void
count_processes (pid_t pid, long *children, int *in_group)
{
  DIR *d = opendir ("/proc");
  int parent, group;

  for (const struct dirent *e; d && (e = readdir (d));)
    if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_stat (e->d_name, &parent, &group)) {
      *children += parent == pid;
      *in_group += group == pid;
    }
  if (d)
    closedir (d);
}

struct proc_has
proc_look (pid_t pid)
{
  struct proc_has has = { .fds = count_fds (pid) };
  long fd_size = 0;
  int in_group = 0;

  read_status (pid, &has, &fd_size);
  count_processes (pid, &has.children, &in_group);
  has.exact = has.fds >= 0;
  if (!has.exact)
    has.fds = fd_size;
  return has;
}

int
proc_group_size (pid_t group)
{
  long children = 0;
  int in_group = 0;

  count_processes (group, &children, &in_group);
  return in_group;
}

/* ---- exports ---- */

static bool
inside (size_t size, uint64_t at, uint64_t len)
{
  return at <= size && len <= size - at;
}

static int
count_symbols (const char *file, size_t size, const Elf64_Shdr *table, const Elf64_Shdr *names,
               char first[128], bool *has_entry)
{
  const Elf64_Sym *sym = (const void *) (file + table->sh_offset);
  int others = 0;

  for (uint64_t i = 0; i < table->sh_size / sizeof *sym; i++) {
    const char *name = file + names->sh_offset + sym[i].st_name;
    unsigned bind = ELF64_ST_BIND (sym[i].st_info);

    if (sym[i].st_shndx == SHN_UNDEF || sym[i].st_name >= names->sh_size ||
        !inside (size, names->sh_offset, names->sh_size) ||
        ELF64_ST_VISIBILITY (sym[i].st_other) != STV_DEFAULT || bind != STB_GLOBAL)
      continue;
    if (strcmp (name, "gpub_provider_entry") == 0)
      *has_entry = true;
    else if (others++ == 0)
      snprintf (first, 128, "%.120s", name);
  }
  return others;
}

static int
look_at_elf (const char *file, size_t size, char first[128], bool *has_entry)
{
  const Elf64_Ehdr *elf = (const void *) file;
  const Elf64_Shdr *sections;

  if (size < sizeof *elf || memcmp (elf->e_ident, ELFMAG, SELFMAG) != 0 ||
      elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_shoff % sizeof (uint64_t) != 0 ||
      !inside (size, elf->e_shoff, (uint64_t) elf->e_shnum * sizeof *sections))
    return -1;
  sections = (const void *) (file + elf->e_shoff);
  for (unsigned i = 0; i < elf->e_shnum; i++)
    if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < elf->e_shnum &&
        inside (size, sections[i].sh_offset, sections[i].sh_size))
      return count_symbols (file, size, &sections[i], &sections[sections[i].sh_link], first,
                            has_entry);
  return -1;
}

int
proc_exports (const char *path, char first[128], bool *has_entry)
{
  AUTO_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  void *file;
  int n;

  *has_entry = false;
  first[0] = '\0';
  if (fd < 0 || fstat (fd, &st) < 0 || st.st_size == 0)
    return -1;
  file = mmap (NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (file == MAP_FAILED)
    return -1;
  n = look_at_elf (file, (size_t) st.st_size, first, has_entry);
  munmap (file, (size_t) st.st_size);
  return n;
}
