/* sign.h - signature version 4: what proves to AWS who asks */
#ifndef GPUB_AWS_SIGN_H
#define GPUB_AWS_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include <gpubroker/provider.h>

enum { KEY_ID_MAX = 160, KEY_SECRET_MAX = 160, KEY_TOKEN_MAX = 8192 };

struct keys {
  char id[KEY_ID_MAX];
  char secret[KEY_SECRET_MAX];
  char token[KEY_TOKEN_MAX]; /* "" for keys that do not expire */
  int64_t expires_ms;        /* 0: never */
};

struct sign {
  const char *method, *path; /* path as it is sent; there is no query string anywhere here */
  const char *region, *service;
  const struct gpub_kv *headers; /* all that are signed, names in lower case and sorted */
  size_t nheaders;
  const void *body;
  size_t body_len;
};

enum { SIGN_DATE_SIZE = 17, SIGN_AUTHORIZATION_SIZE = 1024, SIGN_HEADERS_MAX = 8 };

/* "20150830T123600Z" */
void sign_date (int64_t now_ms, char date[static SIGN_DATE_SIZE]);
/* The value of the Authorization header; date is that of the header x-amz-date. */
void sign_v4 (const struct sign *s, const struct keys *k, const char *date,
              char authorization[static SIGN_AUTHORIZATION_SIZE]);

#endif
