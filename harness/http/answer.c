#include "http/answer.h"

#include "http/chars.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Date */

/* Two digits as a number from `low` to `high`; -1 if they are none. */
static int two_digits(const char *text, int low, int high)
{
    if (!chars_is_digit(text[0]) || !chars_is_digit(text[1]))
        return -1;
    int number = (text[0] - '0') * 10 + (text[1] - '0');
    return number >= low && number <= high ? number : -1;
}

/* The index of three letters in a string of such names; -1 if they are none. */
static int name_index(const char *names, const char *text)
{
    for (int i = 0; names[3 * i] != '\0'; i++)
        if (memcmp(names + 3 * i, text, 3) == 0)
            return i;
    return -1;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days since 1 January 1970 of a day in the Gregorian calendar; month from 0. -1: no such day. */
static int64_t days_since_epoch(int year, int month, int day)
{
    static const int lengths[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    static const int before[12] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    if (day > lengths[month] + (month == 1 && is_leap(year)) || year < 1970)
        return -1;
    int64_t years = year - 1;
    int64_t leap_days = years / 4 - years / 100 + years / 400 - 477; /* 477 up to 1969 */
    return (int64_t)(year - 1970) * 365 + leap_days + before[month] + (month > 1 && is_leap(year)) +
           day - 1;
}

time_t http_date_parse(const char *text, size_t size)
{
    /* "Sun, 06 Nov 1994 08:49:37 GMT" */
    if (size != HTTP_DATE_BYTES || memcmp(text + 3, ", ", 2) != 0 || text[7] != ' ' ||
        text[11] != ' ' || text[16] != ' ' || text[19] != ':' || text[22] != ':' ||
        memcmp(text + 25, " GMT", 4) != 0)
        return -1;
    int weekday = name_index("ThuFriSatSunMonTueWed", text); /* the epoch was a Thursday */
    int day = two_digits(text + 5, 1, 31);
    int month = name_index("JanFebMarAprMayJunJulAugSepOctNovDec", text + 8);
    int century = two_digits(text + 12, 0, 99), year = two_digits(text + 14, 0, 99);
    int hour = two_digits(text + 17, 0, 23), minute = two_digits(text + 20, 0, 59);
    int second = two_digits(text + 23, 0, hour == 23 && minute == 59 ? 60 : 59);
    if (weekday < 0 || day < 0 || month < 0 || century < 0 || year < 0 || hour < 0 || minute < 0 ||
        second < 0)
        return -1;
    int64_t days = days_since_epoch(century * 100 + year, month, day);
    if (days < 0 || days % 7 != weekday)
        return -1;
    return (time_t)(days * 86400 + hour * 3600 + minute * 60 + second);
}

static bool is_fresh(time_t date, time_t now)
{
    return now - date <= HTTP_DATE_SKEW && date - now <= HTTP_DATE_SKEW;
}

/* ---- the full check */

struct reason { /* the caller's buffer, written to once */
    char *text;
    size_t bytes;
};

static bool __attribute__((format(printf, 2, 3)))
wrong(const struct reason *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, why->bytes, format, arguments);
    va_end(arguments);
    return false;
}

#define SHOWN_MAX 48 /* bytes of a value or body that a reason shows */

struct shown {
    char text[SHOWN_MAX * 4 + 8];
};

/* The bytes in quotes, with escapes for what would not print, shortened. */
static struct shown show(const char *bytes, size_t size)
{
    struct shown shown;
    char *out = shown.text;
    *out++ = '"';
    for (size_t i = 0; i < size && i < SHOWN_MAX; i++) {
        unsigned char c = (unsigned char)bytes[i];
        const char *named = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
        if (named != NULL)
            out = stpcpy(out, named);
        else if (c < ' ' || c > '~')
            out += sprintf(out, "\\x%02x", c);
        else if (c == '"' || c == '\\')
            out += sprintf(out, "\\%c", c);
        else
            *out++ = (char)c;
    }
    strcpy(out, size > SHOWN_MAX ? "\"..." : "\"");
    return shown;
}

static struct shown show_value(const struct http_response *r, const struct http_field *f)
{
    return show(r->head + f->value, f->value_bytes);
}

/* The only field of that name in *field; false with the reason if there are several. */
static bool single_field(const struct http_response *r, const char *name, const struct reason *why,
                         const struct http_field **field)
{
    *field = http_response_field(r, name, 0);
    if (*field == NULL || http_response_field(r, name, 1) == NULL)
        return true;
    return wrong(why, "expected one %s line, came several (RFC 9110 5.3)", name);
}

static bool status_check(const struct http_expect *expect, const struct http_response *r,
                         const struct reason *why)
{
    if (expect->status == 0)
        return r->status / 100 == 2 ||
               wrong(why, "expected a status of 200 to 299, came %u", r->status);
    return r->status == expect->status ||
           wrong(why, "expected status %u, came %u", expect->status, r->status);
}

static bool type_check(const struct http_expect *expect, const struct http_response *r,
                       const struct reason *why)
{
    const struct http_field *f;
    if (!single_field(r, "Content-Type", why, &f))
        return false;
    if (f == NULL)
        return wrong(why, "expected Content-Type %s, came none", expect->content_type);
    const char *value = r->head + f->value;
    const char *semicolon = memchr(value, ';', f->value_bytes);
    size_t size = semicolon != NULL ? (size_t)(semicolon - value) : f->value_bytes;
    while (size > 0 && chars_is_blank(value[size - 1]))
        size--;
    if (chars_equal(value, size, expect->content_type))
        return true;
    return wrong(why, "expected Content-Type %s, came %s", expect->content_type,
                 show_value(r, f).text);
}

static bool body_check(const struct http_expect *expect, const struct http_response *r,
                       const struct reason *why)
{
    const struct http_field *f;
    if (!single_field(r, "Content-Length", why, &f))
        return false;
    if (f != NULL && memchr(r->head + f->value, ',', f->value_bytes) != NULL)
        return wrong(why, "expected one number as Content-Length, came %s (RFC 9110 8.6)",
                     show_value(r, f).text);
    if (expect->head)
        return f == NULL || r->content_length == expect->body_bytes ||
               wrong(why, "expected Content-Length %zu as for GET, came %s (RFC 9110 8.6)",
                     expect->body_bytes, show_value(r, f).text);
    size_t kept = expect->body_bytes < HTTP_BODY_KEEP ? expect->body_bytes : HTTP_BODY_KEEP;
    if (r->body_bytes == expect->body_bytes && memcmp(r->body, expect->body, kept) == 0)
        return true;
    size_t came = r->body_bytes < HTTP_BODY_KEEP ? (size_t)r->body_bytes : HTTP_BODY_KEEP;
    return wrong(why, "expected a body of %zu bytes %s, came %llu bytes %s", expect->body_bytes,
                 show(expect->body, kept).text, (unsigned long long)r->body_bytes,
                 show(r->body, came).text);
}

static bool date_check(const struct http_response *r, time_t now, const struct reason *why)
{
    const struct http_field *f;
    if (!single_field(r, "Date", why, &f))
        return false;
    if (f == NULL)
        return wrong(why, "expected a Date, came none (RFC 9110 6.6.1)");
    time_t date = http_date_parse(r->head + f->value, f->value_bytes);
    if (date == -1)
        return wrong(why, "expected a Date in IMF-fixdate (RFC 9110 5.6.7), came %s",
                     show_value(r, f).text);
    if (is_fresh(date, now))
        return true;
    return wrong(why, "expected a Date at most %d s from now, came one %lld s %s: %s",
                 HTTP_DATE_SKEW, (long long)(date < now ? now - date : date - now),
                 date < now ? "old" : "in the future", show_value(r, f).text);
}

static bool close_check(const struct http_response *r, const struct reason *why)
{
    if (r->close || (r->minor == 0 && !r->keep_alive))
        return true;
    const struct http_field *f = http_response_field(r, "Connection", 0);
    if (f == NULL)
        return wrong(why, "expected Connection: close, came no Connection (RFC 9112 9.6)");
    return wrong(why, "expected Connection: close, came %s (RFC 9112 9.6)", show_value(r, f).text);
}

bool http_answer_check(const struct http_expect *expect, const struct http_response *r, time_t now,
                       char *why, size_t why_bytes)
{
    struct reason reason = {.text = why, .bytes = why_bytes};
    return status_check(expect, r, &reason) &&
           (expect->body == NULL || body_check(expect, r, &reason)) &&
           (expect->content_type == NULL || type_check(expect, r, &reason)) &&
           (!expect->date || date_check(r, now, &reason)) &&
           (!expect->close || close_check(r, &reason));
}

/* ---- the pattern */

bool http_pattern_learn(struct http_pattern *p, const struct http_response *r, const char *wire,
                        size_t size)
{
    p->size = 0;
    p->date = 0;
    p->date_s = 0;
    if (r->framing == HTTP_FRAMING_CHUNKED || r->framing == HTTP_FRAMING_EOF ||
        r->informational != 0 || r->total_bytes != size || size > HTTP_PATTERN_MAX)
        return false;
    const struct http_field *f = http_response_field(r, "Date", 0);
    if (f != NULL && http_response_field(r, "Date", 1) == NULL) {
        time_t date = http_date_parse(r->head + f->value, f->value_bytes);
        if (date != -1) {
            p->date = f->value;
            p->date_s = date;
        }
    }
    memcpy(p->bytes, wire, size);
    p->keep_alive = r->keep_alive;
    p->size = size;
    return true;
}

bool http_pattern_match_date(struct http_pattern *p, const char *wire, time_t now)
{
    size_t after = p->date + HTTP_DATE_BYTES;
    if (p->date == 0 || memcmp(wire, p->bytes, p->date) != 0 ||
        memcmp(wire + after, p->bytes + after, p->size - after) != 0)
        return false;
    time_t date = http_date_parse(wire + p->date, HTTP_DATE_BYTES);
    if (date == -1 || !is_fresh(date, now))
        return false;
    memcpy(p->bytes + p->date, wire + p->date, HTTP_DATE_BYTES);
    p->date_s = date;
    return true;
}
