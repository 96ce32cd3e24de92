/* SPDX-License-Identifier: Apache-2.0 */
#include "template/inodes.h"

struct slot {
	uint64_t a, b;
	bool used;
	uint8_t value[INODE_VALUE_SIZE];
};

/* Open addressing, at most half full; the size is a power of two. */
struct inode_set {
	struct slot *slots;
	size_t size;
	size_t count;
};

struct inode_set *inode_set_new(void)
{
	struct inode_set *s = xcalloc(1, sizeof *s);

	s->size = 256;
	s->slots = xcalloc(s->size, sizeof *s->slots);
	return s;
}

void inode_set_free(struct inode_set *s)
{
	if (!s)
		return;
	free(s->slots);
	free(s);
}

/* The slot that holds the key, or the free one where it would go. */
static struct slot *slot_of(struct slot *slots, size_t size, uint64_t a, uint64_t b)
{
	size_t at = (size_t) ((b ^ a * 31) * 0x9e3779b97f4a7c15u >> 20) & (size - 1);

	while (slots[at].used && (slots[at].a != a || slots[at].b != b))
		at = (at + 1) & (size - 1);
	return &slots[at];
}

static void grow(struct inode_set *s)
{
	size_t size = s->size * 2;
	struct slot *slots = xcalloc(size, sizeof *slots);

	for (size_t i = 0; i < s->size; i++)
		if (s->slots[i].used)
			*slot_of(slots, size, s->slots[i].a, s->slots[i].b) = s->slots[i];
	free(s->slots);
	s->slots = slots;
	s->size = size;
}

uint8_t *inode_set_add(struct inode_set *s, uint64_t a, uint64_t b, bool *ret_new)
{
	struct slot *slot;

	if (s->count * 2 >= s->size)
		grow(s);
	slot = slot_of(s->slots, s->size, a, b);
	if (ret_new)
		*ret_new = !slot->used;
	if (!slot->used) {
		slot->used = true;
		slot->a = a;
		slot->b = b;
		s->count++;
	}
	return slot->value;
}

bool inode_set_has(const struct inode_set *s, uint64_t a, uint64_t b)
{
	return slot_of(s->slots, s->size, a, b)->used;
}
