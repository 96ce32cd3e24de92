/* SPDX-License-Identifier: Apache-2.0 */
#include "template/digest.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/str.h"
#include "template/inodes.h"
#include "template/tree.h"

#define LISTING_HEAD    "cuvette template listing 1\n"
#define SHA256_SIZE     32
#define CHUNK           262144
#define DEPTH_MAX       400     /* two descriptors per level */

struct walk {
	EVP_MD_CTX *listing;
	struct inode_set *read;         /* hard-linked files already hashed */
	struct progress *progress;
	struct digest_result *result;
	char path[8192];                /* of the entry at hand */
	char *chunk;
	int depth;
};

static void md_freep(EVP_MD_CTX **md)
{
	EVP_MD_CTX_free(*md);
}

static EVP_MD_CTX *md_new(void)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();

	if (!md || !EVP_DigestInit_ex(md, EVP_sha256(), NULL))
		abort();
	return md;
}

static int hash_fd(int fd, char *chunk, struct progress *progress, uint8_t ret[SHA256_SIZE], uint64_t *ret_size,
                   struct err *err)
{
	_cleanup_(md_freep) EVP_MD_CTX *md = md_new();
	uint64_t size = 0;

	for (;;) {
		ssize_t n = read_full(fd, chunk, CHUNK);

		if (n < 0)
			return err_sys(err, errno, "read");
		EVP_DigestUpdate(md, chunk, (size_t) n);
		size += (uint64_t) n;
		if (progress_add(progress, (uint64_t) n, 0, err) < 0)
			return -1;
		if (n < CHUNK)
			break;
	}
	EVP_DigestFinal_ex(md, ret, NULL);
	if (ret_size)
		*ret_size = size;
	return 0;
}

int digest_fd(int fd, struct progress *progress, char ret_hex[TEMPLATE_DIGEST_SIZE], uint64_t *ret_size,
              struct err *err)
{
	_cleanup_free_ char *chunk = xcalloc(1, CHUNK);
	uint8_t sum[SHA256_SIZE];

	if (hash_fd(fd, chunk, progress, sum, ret_size, err) < 0)
		return -1;
	hex_encode(sum, sizeof sum, ret_hex);
	return 0;
}

/* The content digest of a regular file and its capabilities, in hex; "-" for no capabilities. */
static int read_file(struct walk *w, int dir_fd, const char *name, const struct stat *st, char ret_hex[65],
                     char ret_caps[64], struct err *err)
{
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t caps[24], sum[SHA256_SIZE];
	bool is_new = true;
	uint8_t *known = st->st_nlink > 1 ? inode_set_add(w->read, st->st_dev, st->st_ino, &is_new) : sum;
	ssize_t n;

	if (fd < 0)
		return err_sys(err, errno, "open");
	if (is_new) {
		if (hash_fd(fd, w->chunk, w->progress, known, NULL, err) < 0)
			return -1;
		w->result->size_bytes += (uint64_t) st->st_size;
	}
	hex_encode(known, SHA256_SIZE, ret_hex);
	n = fgetxattr(fd, XATTR_NAME_CAPS, caps, sizeof caps);
	if (n > 0)
		hex_encode(caps, (size_t) n, ret_caps);
	else
		strcpy(ret_caps, "-");
	return 0;
}

static char type_of(mode_t mode)
{
	return S_ISDIR(mode) ? 'd' : S_ISREG(mode) ? 'f' : S_ISLNK(mode) ? 'l' : S_ISFIFO(mode) ? 'p' : '?';
}

/* One record: "TYPE MODE UID GID SIZE CONTENT CAPS PATH\0TARGET\0". */
static int add_record(struct walk *w, int dir_fd, const char *name, const struct stat *st, struct err *err)
{
	char head[256], content[65] = "-", caps[64] = "-", target[PATH_MAX] = "";
	uint64_t size = 0;
	int n;

	if (S_ISREG(st->st_mode)) {
		if (read_file(w, dir_fd, name, st, content, caps, err) < 0)
			return -1;
		size = (uint64_t) st->st_size;
	} else if (S_ISLNK(st->st_mode)) {
		ssize_t len = readlinkat(dir_fd, name, target, sizeof target - 1);

		if (len < 0)
			return err_sys(err, errno, "readlink");
		target[len] = '\0';
		size = (uint64_t) len;
	} else if (type_of(st->st_mode) == '?') {
		return err_set(err, ERR_INVALID, "it is of a kind that a template cannot hold");
	}
	n = snprintf(head, sizeof head, "%c %04o %u %u %llu %s %s ", type_of(st->st_mode),
	             S_ISLNK(st->st_mode) ? 0777 : st->st_mode & 07777, st->st_uid, st->st_gid,
	             (unsigned long long) size, content, caps);
	EVP_DigestUpdate(w->listing, head, (size_t) n);
	EVP_DigestUpdate(w->listing, w->path, strlen(w->path) + 1);
	EVP_DigestUpdate(w->listing, target, strlen(target) + 1);
	return progress_add(w->progress, 0, 1, err);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dots(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int walk_dir(struct walk *w, int fd, struct err *err);

static int walk_entry(struct walk *w, int dir_fd, const char *name, struct err *err)
{
	struct stat st;
	int result;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "stat");
	if (add_record(w, dir_fd, name, &st, err) < 0)
		return -1;
	w->result->files++;
	if (!S_ISDIR(st.st_mode))
		return 0;
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "open");
	if (++w->depth > DEPTH_MAX)
		return err_set(err, ERR_INVALID, "directories are nested more than %d deep", DEPTH_MAX);
	result = walk_dir(w, fd, err);
	w->depth--;
	return result;
}

/* Children in the order of their names' bytes, each directory before what it holds. */
static int walk_dir(struct walk *w, int fd, struct err *err)
{
	struct dirent **list = NULL;
	int count = scandirat(fd, ".", &list, not_dots, by_bytes), result = 0;
	size_t at = strlen(w->path);

	if (count < 0)
		return err_sys(err, errno, "read directory");
	for (int i = 0; i < count; i++) {
		int room = (int) (sizeof w->path - at);

		if (result == 0 && snprintf(w->path + at, (size_t) room, "%s%s", at ? "/" : "", list[i]->d_name) >= room)
			result = err_set(err, ERR_INVALID, "the path is too long");
		if (result == 0)
			result = walk_entry(w, fd, list[i]->d_name, err);
		if (result == 0)
			w->path[at] = '\0';     /* after a failure it names the place */
		free(list[i]);
	}
	free(list);
	return result;
}

int digest_tree(int root_fd, struct progress *progress, struct digest_result *ret, struct err *err)
{
	_cleanup_(md_freep) EVP_MD_CTX *listing = md_new();
	_cleanup_(inode_set_freep) struct inode_set *read = inode_set_new();
	_cleanup_free_ char *chunk = xcalloc(1, CHUNK);
	struct digest_result result = { .files = 0 };
	struct walk w = { .listing = listing, .read = read, .progress = progress, .result = &result, .chunk = chunk };
	uint8_t sum[SHA256_SIZE];
	struct stat st;

	EVP_DigestUpdate(listing, LISTING_HEAD, strlen(LISTING_HEAD));
	if (fstat(root_fd, &st) < 0)
		return err_sys(err, errno, "stat the root");
	if (add_record(&w, root_fd, ".", &st, err) < 0 || walk_dir(&w, root_fd, err) < 0) {
		char shown[96];

		return err && err->code == ERR_CANCELED ? -1 :
		       err_wrap(err, "digest of /%s", tree_printable(w.path, shown));
	}
	EVP_DigestFinal_ex(listing, sum, NULL);
	hex_encode(sum, sizeof sum, result.hex);
	*ret = result;
	return 0;
}
