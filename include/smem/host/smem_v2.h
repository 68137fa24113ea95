#ifndef SMEM_V2_H
#define SMEM_V2_H

/* What SMEM_API_LEVEL 2 adds to smem.h, which includes this. */

#include "smem.h"

/* Flags of copies. */
#define ASYNC_COPY_FLAG (1UL << 0)  /* return at once; smem_bm_wait() waits */
#define COPY_EXTEND_FLAG (1UL << 1) /* ignored: the engine chooses */

#define SMEM_WORLD_SIZE_MAX 1024U
#define SMEM_INVALID_DEV_ID (-1)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Serves a store at `storeUrl` from this process until smem_uninit(). SMEM_REPEAT_CALL when this
 * process does already, SMEM_RESOURCE_IN_USE when something else listens there.
 */
SMEM_API int32_t smem_create_config_store(const char* storeUrl);

/*
 * TLS 1.3 for what is opened or served afterwards: the store, and what ranks and engines move
 * between hosts. `tls_info` is "tlsCaPath: PATH; tlsCaFile: A,B; tlsCert: PATH", and tlsPk,
 * tlsPkPwd, tlsCrlPath, tlsCrlFile. The key may also come from the function below.
 */
SMEM_API int32_t smem_set_conf_store_tls(bool enable, const char* tls_info,
                                         const uint32_t tls_info_len);
/* Writes at most *plainTextLength bytes and sets it to how many they are; 0 is success. */
typedef int (*smem_decrypt_handler)(const char* cipherText, size_t cipherTextLength,
                                    char* plainText, size_t* plainTextLength);
/* The text of the key (PEM), and its password, which `h` decrypts where it is not NULL. */
SMEM_API int32_t smem_set_config_store_tls_key(const char* tls_pk, const uint32_t tls_pk_len,
                                               const char* tls_pk_pw, const uint32_t tls_pk_pw_len,
                                               const smem_decrypt_handler h);

#ifdef __cplusplus
}
#endif

#endif
