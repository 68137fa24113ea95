#ifndef SMEM_CODES_H
#define SMEM_CODES_H

/* What functions return. smem_get_last_err_msg() has the sentence that goes with it. */
enum {
  SMEM_OK = 0,
  SMEM_ERROR = -1,                /* none of those below: the sentence says what broke */
  SMEM_INVALID_PARAM = -2000,     /* fix the call */
  SMEM_MALLOC_FAILED = -2001,     /* no memory, addresses or descriptors left */
  SMEM_NEW_OBJECT_FAILED = -2002, /* the store could not be served here */
  SMEM_NOT_STARTED = -2003,       /* join first */
  SMEM_TIMEOUT = -2004,           /* retry, or allow more time */
  SMEM_REPEAT_CALL = -2005,       /* it was done before and cannot be done twice */
  SMEM_DUPLICATED_OBJECT = -2006, /* another process or object has this rank, id or address */
  SMEM_OBJECT_NOT_EXISTS = -2007, /* no such rank or registration */
  SMEM_NOT_INITIALIZED = -2008,   /* call smem_init() and smem_bm_init() or smem_shm_init() first */
  SMEM_RESOURCE_IN_USE = -2009    /* something else listens at that address */
};

#endif
