/* thread_transport_private.h: all chips as threads of one process. */
#ifndef WEFT_THREAD_TRANSPORT_PRIVATE_H
#define WEFT_THREAD_TRANSPORT_PRIVATE_H

#include "transport_private.h"

typedef struct weft_thread_net weft_thread_net;

/** A net of `chips` ends; NULL without memory. */
weft_thread_net *weft_thread_net_new(uint32_t chips);
/** Frees it; no thread may use it any more. NULL is allowed. */
void weft_thread_net_free(weft_thread_net *net);
/** Seconds a wait may last from now on; 0: for ever. */
void weft_thread_net_timeout(weft_thread_net *net, double seconds);
weft_endpoint *weft_thread_net_end(weft_thread_net *net, uint32_t chip);
/** The one process of a run over threads. */
weft_process *weft_thread_net_process(weft_thread_net *net);

#endif
