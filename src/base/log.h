/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * log: one line per event, "message key=value ...", on stderr.
 *
 * Values are quoted and escaped when they hold anything but plain characters,
 * so nothing from a sandbox can forge a line or drive a terminal.  Calls keep
 * errno.  Keys and values alternate and end with NULL; the macros add it.
 */
#include "base/base.h"

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* Lines above this level are dropped; the default is LOG_LEVEL_WARN. */
void log_set_level(enum log_level level);
void log_set_name(const char *program);         /* borrowed */
void log_line(enum log_level level, const char *msg, ...) __attribute__((sentinel));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__, NULL)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, __VA_ARGS__, NULL)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__, NULL)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__, NULL)
