/* SPDX-License-Identifier: Apache-2.0 */
/* F12: what this host lacks is named, with a way out; trying leaves nothing behind. */
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>

#include "engine/features-internal.h"
#include "tap.h"

static struct layers layers;

static void show(void)
{
	static const char *const states[] = { "present", "degraded", "missing" };

	for (size_t i = 0; i < layers.count; i++)
		printf("%-26s %c %-8s %s%s%s\n", layers.list[i].name, layers.list[i].required ? '*' : ' ',
		       states[layers.list[i].state], layers.list[i].text, layers.list[i].fix[0] ? "\n\t-> " : "",
		       layers.list[i].fix);
}

static const struct layer *layer_of(const char *name)
{
	for (size_t i = 0; i < layers.count; i++)
		if (!strcmp(layers.list[i].name, name))
			return &layers.list[i];
	FAIL("no layer \"%s\"", name);
}

static void is_plain(const char *text, size_t size)
{
	CHECK(strlen(text) < size - 1);         /* not cut off */
	for (const char *c = text; *c; c++)
		CHECK(*c >= ' ' && *c <= '~');
}

/* Every layer says something, and what is not all there says what to do. */
static void check_wording(void)
{
	CHECK(layers.count >= 38 && layers.count <= LAYERS_MAX);
	for (size_t i = 0; i < layers.count; i++) {
		const struct layer *l = &layers.list[i];

		CHECK(l->name && *l->name);
		if (!*l->text)
			FAIL("%s says nothing", l->name);
		if (!*l->fix != (l->state == LAYER_PRESENT))
			FAIL("%s: state %d with the fix \"%s\"", l->name, l->state, l->fix);
		is_plain(l->text, sizeof l->text);
		is_plain(l->fix, sizeof l->fix);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(l->name, layers.list[k].name) != 0);
	}
}

/* Entries of a directory whose names start so. */
static int count_entries(const char *path, const char *prefix)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir)))
		n += !strncmp(e->d_name, prefix, strlen(prefix));
	if (dir)
		closedir(dir);
	return n;
}

static int count_mounts(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];
	int n = 0;

	while (f && fgets(line, sizeof line, f))
		n++;
	if (f)
		fclose(f);
	return n;
}

TEST(every_layer_has_a_text_and_a_way_out)
{
	features_probe("/var/lib/cuvette", &layers);
	show();
	check_wording();
}

TEST(the_list_starts_with_what_the_rest_needs)
{
	static const char *const order[] = {
		"root", "user namespaces", "mount namespaces", "cgroup tree", "memory limit", "mount API", "overlay",
		"seccomp filters", "Landlock", "sysctls", "data directory", "mmdebstrap",
	};
	const struct layer *last = NULL;

	features_probe("/tmp", &layers);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const struct layer *l = layer_of(order[i]);

		CHECK(!last || l > last);
		last = l;
	}
	CHECK(layer_of("user namespaces")->required);
	CHECK(layer_of("memory limit")->required);
	CHECK(!layer_of("sysctls")->required);
	CHECK(!layer_of("Landlock")->required);
}

TEST(nothing_is_left_behind)
{
	char dir[] = "/tmp/cuvette-features-XXXXXX";
	char slot[64];
	int fds = count_entries("/proc/self/fd", ""), mounts = count_mounts();

	CHECK(mkdtemp(dir));
	snprintf(slot, sizeof slot, "cuvette-doctor-%d", getpid());
	features_probe(dir, &layers);
	CHECK_INT(count_entries("/proc/self/fd", ""), fds);
	CHECK_INT(count_mounts(), mounts);
	CHECK_INT(count_entries("/sys/fs/cgroup/unified", slot), 0);
	CHECK_INT(count_entries("/sys/fs/cgroup/memory", slot), 0);
	CHECK_INT(count_entries("/sys/fs/cgroup/cuvette", slot), 0);
	CHECK_INT(count_entries(dir, ""), 2);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	CHECK(rmdir(dir) == 0);
}

TEST(a_data_directory_that_can_not_be_written_is_named)
{
	features_probe("/proc/nowhere/data", &layers);
	CHECK_INT(layer_of("data directory")->state, LAYER_MISSING);
	CHECK_CONTAINS(layer_of("data directory")->text, "/proc/nowhere/data");
	check_wording();
	features_probe("", &layers);
	check_wording();
	features_probe("relative/one", &layers);
	check_wording();
}

/* (a) of F12: an ordinary user is told so, and never given less than he asked for in silence. */
TEST(an_ordinary_user_is_refused_with_a_reason)
{
	if (geteuid() == 0)
		CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	features_probe("/tmp", &layers);
	show();
	CHECK_INT(layer_of("root")->state, LAYER_MISSING);
	CHECK_CONTAINS(layer_of("root")->fix, "root");
	CHECK_INT(layer_of("idmapped mounts")->state, LAYER_MISSING);
	CHECK_INT(layer_of("cgroup tree")->state, LAYER_MISSING);
	check_wording();
}

/* (c) of F12: root of a user namespace is not root. */
TEST(root_of_a_user_namespace_is_told_apart)
{
	if (unshare(CLONE_NEWUSER) < 0)
		SKIP("no user namespaces: %s", strerror(errno));
	features_probe("/tmp", &layers);
	CHECK_INT(layer_of("root")->state, LAYER_MISSING);
	CHECK(layer_of("container")->state == LAYER_DEGRADED);
	check_wording();
}

/* (b) of F12: Docker's profile answers EPERM to unshare and mount; the filter gets the blame. */
TEST(a_seccomp_filter_is_named_as_what_blocks)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 2, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
	features_probe("/tmp", &layers);
	show();
	CHECK_INT(layer_of("user namespaces")->state, LAYER_MISSING);
	CHECK_CONTAINS(layer_of("pid namespaces")->text, "seccomp");
	CHECK_INT(layer_of("overlay")->state, LAYER_MISSING);
	CHECK_INT(layer_of("container")->state, LAYER_DEGRADED);
	if (layer_of("cgroup tree")->state == LAYER_PRESENT)
		CHECK_CONTAINS(layer_of("clone into cgroup")->text, "seccomp");
	check_wording();
}
