/* The monotonic clock, in nanoseconds since an arbitrary point (clock_gettime(2),
 * CLOCK_MONOTONIC: not stepped by the administrator, slewed by NTP), and sleeping by it.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

uint64_t clock_now_ns(void);

/* Sleeps until clock_now_ns() >= deadline_ns; goes on after signals. */
void clock_sleep_until_ns(uint64_t deadline_ns);

#endif
