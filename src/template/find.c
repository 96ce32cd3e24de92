/* SPDX-License-Identifier: Apache-2.0 */
#include "template/template.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

const char *template_data_dir(void)
{
	const char *dir = getenv("CUVETTE_DATA");

	return dir && *dir ? dir : "/var/lib/cuvette";
}

static bool is_digest(const char *name)
{
	return is_hex(name, TEMPLATE_DIGEST_SIZE - 1);
}

bool template_name_is_valid(const char *name)
{
	size_t n = strlen(name);

	if (n < 1 || n >= TEMPLATE_NAME_SIZE)
		return false;
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != n)
		return false;
	/* A whole digest always means that template. */
	return name[0] != '.' && name[0] != '_' && name[0] != '-' && !is_digest(name);
}

static bool is_template(int templates_fd, const char *digest)
{
	char path[TEMPLATE_DIGEST_SIZE + 8];
	struct stat st;

	snprintf(path, sizeof path, "%s/rootfs", digest);
	return fstatat(templates_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* The digest that names/NAME points to; false when there is none. */
static bool find_name(int templates_fd, const char *name, char ret[TEMPLATE_DIGEST_SIZE])
{
	char path[TEMPLATE_NAME_SIZE + 8], target[80];
	ssize_t n;

	snprintf(path, sizeof path, "names/%s", name);
	n = readlinkat(templates_fd, path, target, sizeof target - 1);
	if (n != 3 + TEMPLATE_DIGEST_SIZE - 1 || strncmp(target, "../", 3) != 0)
		return false;
	target[n] = '\0';
	if (!is_digest(target + 3) || !is_template(templates_fd, target + 3))
		return false;
	memcpy(ret, target + 3, TEMPLATE_DIGEST_SIZE);
	return true;
}

/* Counts the templates whose digest starts with `prefix`; the last one is in ret. */
static int find_prefix(int templates_fd, const char *prefix, char ret[TEMPLATE_DIGEST_SIZE])
{
	int fd = openat(templates_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		close_fd(fd);
		return 0;
	}
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || !is_digest(e->d_name) ||
		    !is_template(templates_fd, e->d_name))
			continue;
		memcpy(ret, e->d_name, TEMPLATE_DIGEST_SIZE);
		found++;
	}
	closedir(dir);
	return found;
}

static int not_found(const char *name, const char *templates, struct err *err)
{
	if (strcmp(name, "default") == 0)
		return err_set(err, ERR_NOT_FOUND,
		               "there is no default template in %.200s yet; 'cuvette template build' makes it", templates);
	return err_set(err, ERR_NOT_FOUND, "there is no template %.64s in %.200s; 'cuvette template list' shows what "
	               "there is", name, templates);
}

int template_find(const char *data_dir, const char *name, char ret_digest[TEMPLATE_DIGEST_SIZE], struct err *err)
{
	_cleanup_close_ int fd = -1;
	char digest[TEMPLATE_DIGEST_SIZE];
	size_t n = strlen(name);
	bool may_be_prefix = n >= TEMPLATE_PREFIX_MIN && n < TEMPLATE_DIGEST_SIZE && is_hex(name, n);
	int found = 0;

	if (!template_name_is_valid(name) && !is_digest(name))
		return err_set(err, ERR_INVALID,
		               "a template is named by 1 to 64 characters of a-z 0-9 . _ - (first a letter or digit), "
		               "or by its digest");
	_cleanup_free_ char *path = xasprintf("%s/templates", data_dir ? data_dir : template_data_dir());
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? not_found(name, path, err) : err_sys(err, errno, "open %s", path);
	if (!is_digest(name) && find_name(fd, name, digest))
		found = 1;
	else if (may_be_prefix)
		found = find_prefix(fd, name, digest);
	if (found > 1)
		return err_set(err, ERR_INVALID, "%s is the start of %d templates; give more digits", name, found);
	if (!found)
		return not_found(name, path, err);
	memcpy(ret_digest, digest, sizeof digest);
	return 0;
}
