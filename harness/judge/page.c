#include "judge/page.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "judge/faults.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_MAX_BYTES = 1 << 20,
    OPEN_WAIT_MS = 100,
    NO_2XX_WAIT_MS = 200,
    TIMES_MAX = 100000,
    LETTERS_MAX = 1 << 24
};

struct reader {
    const char *file;
    unsigned line;
    struct page *page;
    struct err *err;
};

#define REFUSE(reader, ...) refuse(reader, __VA_ARGS__)

static int __attribute__((format(printf, 2, 3)))
refuse(const struct reader *r, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return err_set(r->err, EINVAL, "%s:%u: %s", r->file, r->line, text);
}

static const char *const level_names[] = {"MUST", "SHOULD", "MAY", "ROBUST", "POLICY"};
enum { LEVELS = sizeof level_names / sizeof level_names[0] };

const char *page_level_name(enum page_level level)
{
    return level_names[level];
}

/* ---- words and numbers */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The text without blanks at its ends; it is changed. */
static char *trimmed(char *text)
{
    text += strspn(text, " \t");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t", text[size - 1]) != NULL)
        text[--size] = '\0';
    return text;
}

/* "12" or "2..64". */
static int read_range(const struct reader *r, const char *text, uint64_t most, uint64_t *low,
                      uint64_t *high)
{
    char *end;
    if (*text < '0' || *text > '9')
        return REFUSE(r, "'%.40s' is no number", text);
    *low = *high = strtoull(text, &end, 10);
    if (begins(end, "..") && end[2] >= '0' && end[2] <= '9')
        *high = strtoull(end + 2, &end, 10);
    if (*end != '\0' || *low > *high || *high > most)
        return REFUSE(r, "'%.40s' is no number, nor a range A..B, up to %llu", text,
                      (unsigned long long)most);
    return 0;
}

static int read_time(const struct reader *r, const char *text, uint64_t *ns)
{
    char *end;
    uint64_t number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    if (number > 0 && number < 100000 && strcmp(end, "ms") == 0)
        *ns = number * NS_PER_MS;
    else if (number > 0 && number < 1000 && strcmp(end, "s") == 0)
        *ns = number * NS_PER_S;
    else
        return REFUSE(r, "'%.40s' is no time; write 50ms or 2s", text);
    return 0;
}

/* ---- send blocks */

static struct page_token *add_token(struct page_step *step, enum page_token_kind kind)
{
    step->tokens = mem_grow(step->tokens, step->token_count + 1, sizeof *step->tokens);
    struct page_token *token = &step->tokens[step->token_count++];
    *token = (struct page_token){.kind = kind};
    return token;
}

static void add_byte(struct page_step *step, char byte)
{
    struct page_token *last = step->token_count > 0 ? &step->tokens[step->token_count - 1] : NULL;
    if (last == NULL || last->kind != TOKEN_BYTES)
        last = add_token(step, TOKEN_BYTES);
    last->bytes = mem_grow(last->bytes, last->size + 1, 1);
    last->bytes[last->size++] = byte;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Reads the escape at *at, which points behind the backslash, and moves it on. */
static int read_escape(const struct reader *r, struct page_step *step, const char **at)
{
    static const char names[] = "rnts0\\";
    static const char bytes[] = "\r\n\t \0\\";
    char c = **at;
    const char *named = c != '\0' ? strchr(names, c) : NULL;
    if (named != NULL) {
        add_byte(step, bytes[named - names]);
        ++*at;
        return 0;
    }
    int high = c == 'x' ? hex_digit((*at)[1]) : -1;
    int low = high >= 0 ? hex_digit((*at)[2]) : -1;
    if (low < 0)
        return REFUSE(r, "unknown escape '\\%.3s'; known: \\r \\n \\t \\s \\0 \\\\ \\xHH", *at);
    add_byte(step, (char)(high << 4 | low));
    *at += 3;
    return 0;
}

static const struct placeholder {
    const char *name;
    enum page_token_kind kind;
    enum { ARGUMENT_NONE, ARGUMENT_COUNT, ARGUMENT_RANGE, ARGUMENT_TIME, ARGUMENT_TEXT } argument;
} placeholders[] = {
    {"host", TOKEN_HOST, ARGUMENT_NONE},      {"path", TOKEN_PATH, ARGUMENT_NONE},
    {"name", TOKEN_NAME, ARGUMENT_NONE},      {"token", TOKEN_WORD, ARGUMENT_NONE},
    {"method", TOKEN_METHOD, ARGUMENT_NONE},  {"letters", TOKEN_LETTERS, ARGUMENT_COUNT},
    {"number", TOKEN_NUMBER, ARGUMENT_RANGE}, {"case", TOKEN_CASE, ARGUMENT_TEXT},
    {"chunks", TOKEN_CHUNKS, ARGUMENT_COUNT}, {"pause", TOKEN_PAUSE, ARGUMENT_TIME},
    {"split", TOKEN_SPLIT, ARGUMENT_NONE},    {"half-close", TOKEN_HALF_CLOSE, ARGUMENT_NONE},
    {"reset", TOKEN_RESET, ARGUMENT_NONE},
};

enum { PLACEHOLDERS = sizeof placeholders / sizeof placeholders[0] };

static int take_argument(const struct reader *r, const struct placeholder *p, const char *text,
                         struct page_token *token)
{
    if ((p->argument == ARGUMENT_NONE) != (*text == '\0'))
        return REFUSE(r, "{%s} takes %s", p->name,
                      p->argument == ARGUMENT_NONE ? "no argument" : "an argument");
    switch (p->argument) {
    case ARGUMENT_COUNT:
        if (read_range(r, text, LETTERS_MAX, &token->low, &token->high) != 0)
            return -EINVAL;
        return token->low == token->high && token->low > 0
                   ? 0
                   : REFUSE(r, "{%s} takes one number above 0", p->name);
    case ARGUMENT_RANGE:
        return read_range(r, text, UINT64_MAX / 2, &token->low, &token->high);
    case ARGUMENT_TIME:
        return read_time(r, text, &token->low);
    case ARGUMENT_TEXT:
        token->bytes = mem_copy_string(text);
        token->size = strlen(text);
        return 0;
    case ARGUMENT_NONE:
        break;
    }
    return 0;
}

/* Reads the placeholder at *at, which points behind the brace, and moves it on. */
static int read_placeholder(const struct reader *r, struct page_step *step, const char **at)
{
    char text[64];
    size_t size = strcspn(*at, "}");
    if ((*at)[size] != '}' || size >= sizeof text)
        return REFUSE(r, "a '{' without its '}'; a brace as a byte is \\x7b");
    memcpy(text, *at, size);
    text[size] = '\0';
    *at += size + 1;
    char *argument = text + strcspn(text, " ");
    if (*argument != '\0')
        *argument++ = '\0';
    for (size_t i = 0; i < PLACEHOLDERS; i++)
        if (strcmp(placeholders[i].name, text) == 0)
            return take_argument(r, &placeholders[i], argument,
                                 add_token(step, placeholders[i].kind));
    char known[200] = "";
    for (size_t i = 0; i < PLACEHOLDERS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), " {%s}",
                 placeholders[i].name);
    return REFUSE(r, "unknown placeholder {%s}; known:%s", text, known);
}

static int read_send_line(const struct reader *r, struct page_step *step, const char *line)
{
    size_t size = strlen(line);
    if (size > 0 && strchr(" \t", line[size - 1]) != NULL)
        return REFUSE(r, "a blank at the line's end; write \\s or \\t");
    int status = 0;
    while (*line != '\0' && status == 0) {
        char c = *line++;
        if (c == '\\')
            status = read_escape(r, step, &line);
        else if (c == '{')
            status = read_placeholder(r, step, &line);
        else if (c < ' ' || c > '~')
            status =
                REFUSE(r, "the byte 0x%02x; write \\x%02x", (unsigned char)c, (unsigned char)c);
        else
            add_byte(step, c);
    }
    return status;
}

static int read_split(const struct reader *r, struct page_step *step, const char *word)
{
    static const char *const names[] = {"bytes", "randomly", "everywhere"};
    for (unsigned i = 0; i < 3; i++)
        if (word != NULL && strcmp(word, names[i]) == 0) {
            step->split = (enum page_split)(SPLIT_BYTES + i);
            return 0;
        }
    return REFUSE(r, "split is one of: bytes, randomly, everywhere");
}

static int read_send_options(const struct reader *r, struct page_step *step, char *options)
{
    char *rest;
    step->times_low = step->times_high = 1;
    char none[1] = "";
    if (options == NULL)
        options = none;
    for (char *word = strtok_r(options, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strtok_r(NULL, " ", &rest);
        if (strcmp(word, "times") == 0) {
            uint64_t low = 0;
            uint64_t high = 0;
            if (read_range(r, value != NULL ? value : "", TIMES_MAX, &low, &high) != 0)
                return -EINVAL;
            if (low == 0)
                return REFUSE(r, "times 0 sends nothing");
            step->times_low = (unsigned)low;
            step->times_high = (unsigned)high;
        } else if (strcmp(word, "split") == 0) {
            if (read_split(r, step, value) != 0)
                return -EINVAL;
        } else {
            return REFUSE(r, "'%.40s' after send; known: times N, split HOW", word);
        }
    }
    return 0;
}

/* ---- expect blocks */

static const struct {
    const char *name;
    enum page_word word;
} words[] = {
    {"hello", WORD_HELLO},
    {"text", WORD_TEXT},
    {"head", WORD_HEAD},
    {"close", WORD_CLOSE},
    {"keep-alive", WORD_KEEP_ALIVE},
    {"dated", WORD_DATED},
    {"sized", WORD_SIZED},
    {"framed", WORD_FRAMED},
    {"single", WORD_SINGLE},
    {"allow", WORD_ALLOW},
    {"http/1.1", WORD_HTTP11},
    {"after-100", WORD_AFTER_100},
    {"no-100", WORD_NO_100},
    {"as-often", WORD_AS_OFTEN},
};

enum { WORDS = sizeof words / sizeof words[0] };

static int read_status(const struct reader *r, struct page_item *item, const char *text)
{
    unsigned low;
    unsigned high;
    if (strcmp(text, "any") == 0) {
        low = 200;
        high = 599;
    } else if (strlen(text) == 3 && text[0] >= '2' && text[0] <= '5' &&
               strcmp(text + 1, "xx") == 0) {
        low = (unsigned)(text[0] - '0') * 100;
        high = low + 99;
    } else if (strlen(text) == 3 && strspn(text, "0123456789") == 3 && text[0] >= '2' &&
               text[0] <= '5') {
        low = high = (unsigned)strtoul(text, NULL, 10);
    } else {
        return REFUSE(r,
                      "'%.40s' is no item: a status, closed, open, in sync, nothing TIME, "
                      "no 2xx or unheard",
                      text);
    }
    if (item->status_count == PAGE_STATUSES_MAX)
        return REFUSE(r, "more than %d statuses", PAGE_STATUSES_MAX);
    item->statuses[item->status_count].low = low;
    item->statuses[item->status_count++].high = high;
    return 0;
}

static int read_answer(const struct reader *r, struct page_item *item, char *text)
{
    char *rest;
    char *statuses = strtok_r(text, " ", &rest);
    char *others;
    for (char *s = strtok_r(statuses, "|", &others); s; s = strtok_r(NULL, "|", &others))
        if (read_status(r, item, s) != 0)
            return -EINVAL;
    for (char *word; (word = strtok_r(NULL, " ", &rest)) != NULL;) {
        size_t i = 0;
        while (i < WORDS && strcmp(words[i].name, word) != 0)
            i++;
        if (i == WORDS)
            return REFUSE(r, "unknown word '%.40s' after a status", word);
        item->words |= words[i].word;
    }
    return 0;
}

static int read_item(const struct reader *r, struct page_choice *choice, char *text)
{
    static const struct {
        const char *text;
        enum page_item_kind kind;
        unsigned quiet_ms;
    } plain[] = {{"100", ITEM_CONTINUE, 0},
                 {"closed", ITEM_CLOSED, 0},
                 {"open", ITEM_OPEN, OPEN_WAIT_MS},
                 {"in sync", ITEM_IN_SYNC, OPEN_WAIT_MS},
                 {"no 2xx", ITEM_NO_2XX, NO_2XX_WAIT_MS},
                 {"unheard", ITEM_UNHEARD, 0}};
    text = trimmed(text);
    if (*text == '\0')
        return REFUSE(r, "an item is missing");
    choice->items = mem_grow(choice->items, choice->count + 1, sizeof *choice->items);
    struct page_item *item = &choice->items[choice->count++];
    *item = (struct page_item){.text = mem_copy_string(text)};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(text, plain[i].text) == 0) {
            item->kind = plain[i].kind;
            item->quiet_ns = plain[i].quiet_ms * NS_PER_MS;
            return 0;
        }
    if (begins(text, "nothing ")) {
        item->kind = ITEM_NOTHING;
        return read_time(r, trimmed(text + 8), &item->quiet_ns);
    }
    item->kind = ITEM_ANSWER;
    return read_answer(r, item, text);
}

static void extend(char **text, const char *between, const char *more)
{
    char *longer =
        *text == NULL ? mem_copy_string(more) : mem_format("%s%s%s", *text, between, more);
    free(*text);
    *text = longer;
}

static int read_expect_line(const struct reader *r, struct page_step *step, char *line)
{
    line = trimmed(line);
    if (*line == '\0')
        return 0;
    bool another = begins(line, "or ");
    bool noted = begins(line, "or noted:");
    extend(&step->text, another ? " " : ", ", line);
    if (another && step->choice_count == 0)
        return REFUSE(r, "'or' before the first alternative");
    if (another || step->choice_count == 0) {
        step->choices = mem_grow(step->choices, step->choice_count + 1, sizeof *step->choices);
        step->choices[step->choice_count++] = (struct page_choice){.noted = noted};
    }
    line += noted ? 9 : another ? 3 : 0;
    char *rest = line;
    for (char *item; (item = strsep(&rest, ",")) != NULL;)
        if (read_item(r, &step->choices[step->choice_count - 1], item) != 0)
            return -EINVAL;
    return 0;
}

/* ---- the page */

static struct page_variant *add_variant(const struct reader *r, const char *title)
{
    struct page *page = r->page;
    page->variants = mem_grow(page->variants, page->count + 1, sizeof *page->variants);
    struct page_variant *variant = &page->variants[page->count++];
    *variant = (struct page_variant){.title = mem_copy_string(title), .line = r->line, .times = 1};
    return variant;
}

/* The next line in *at, which ends there: NULL at the end. */
static char *next_line(struct reader *r, char **at)
{
    char *line = strsep(at, "\n");
    if (line == NULL || (*at == NULL && *line == '\0'))
        return NULL;
    r->line++;
    return line;
}

static int read_block(struct reader *r, char *head, char **at)
{
    char *options = trimmed(head + 3);
    char *kind = strsep(&options, " ");
    bool expects = strcmp(kind, "expect") == 0;
    if (!expects && strcmp(kind, "send") != 0)
        return REFUSE(r, "a block is ```send or ```expect, not ```%.40s", kind);
    if (expects && options != NULL)
        return REFUSE(r, "nothing stands after ```expect");
    if (r->page->fault != NULL)
        return REFUSE(r, "a page with a fault has no blocks");
    struct page_variant *variant = r->page->count > 0 ? &r->page->variants[r->page->count - 1]
                                                      : add_variant(r, r->page->title);
    variant->steps = mem_grow(variant->steps, variant->count + 1, sizeof *variant->steps);
    struct page_step *step = &variant->steps[variant->count++];
    *step = (struct page_step){.expects = expects};
    int status = expects ? 0 : read_send_options(r, step, options);
    unsigned first_line = r->line;
    char *line = NULL;
    while (status == 0 && (line = next_line(r, at)) != NULL && !begins(line, "```"))
        status = expects ? read_expect_line(r, step, line) : read_send_line(r, step, line);
    if (status != 0)
        return status;
    if (line == NULL) {
        r->line = first_line;
        return REFUSE(r, "the block does not end");
    }
    if (expects ? step->choice_count == 0 : step->token_count == 0)
        return REFUSE(r, "the block is empty");
    return 0;
}

static int read_yes(const struct reader *r, const char *value, bool *yes)
{
    *yes = strcmp(value, "yes") == 0;
    return *yes || strcmp(value, "no") == 0 ? 0 : REFUSE(r, "yes or no, not '%.40s'", value);
}

static int read_level(const struct reader *r, const char *value)
{
    for (int i = 0; i < LEVELS; i++)
        if (strcmp(level_names[i], value) == 0) {
            r->page->level = (enum page_level)i;
            return 0;
        }
    return REFUSE(r, "level is MUST, SHOULD, MAY, ROBUST or POLICY, not '%.40s'", value);
}

enum { HEAD_LEVEL = 1, HEAD_SOURCE = 2, HEAD_GATE = 4, HEAD_NEEDED = 7 };

/* A "- key: value" line; what was given is marked in *given. */
static int read_head_line(const struct reader *r, char *line, unsigned *given)
{
    char *value = line + 2;
    char *key = trimmed(strsep(&value, ":"));
    if (value == NULL || *(value = trimmed(value)) == '\0')
        return REFUSE(r, "'%.40s' is not of the form - key: value", line);
    if (strcmp(key, "level") == 0) {
        *given |= HEAD_LEVEL;
        return read_level(r, value);
    }
    if (strcmp(key, "gate") == 0) {
        *given |= HEAD_GATE;
        return read_yes(r, value, &r->page->gate);
    }
    if (strcmp(key, "slow") == 0)
        return read_yes(r, value, &r->page->slow);
    if (strcmp(key, "load") == 0)
        return read_yes(r, value, &r->page->load);
    bool source = strcmp(key, "source") == 0;
    if (!source && strcmp(key, "fault") != 0)
        return REFUSE(r, "unknown key '%.40s'; known: level source gate slow load fault", key);
    *given |= source ? HEAD_SOURCE : 0;
    char **text = source ? &r->page->source : &r->page->fault;
    if (*text != NULL)
        return REFUSE(r, "'%s' is given again", key);
    *text = mem_copy_string(value);
    return source || fault_find(value) != NULL ? 0 : REFUSE(r, "unknown fault '%.40s'", value);
}

/* "- times: N" under the title of a variant. */
static int read_times(const struct reader *r, const char *value)
{
    uint64_t low = 0;
    uint64_t high = 0;
    if (read_range(r, value, TIMES_MAX, &low, &high) != 0)
        return -EINVAL;
    if (low != high || low == 0)
        return REFUSE(r, "a variant is carried out a fixed number of times");
    r->page->variants[r->page->count - 1].times = (unsigned)low;
    return 0;
}

static int read_title(struct reader *r, char *line)
{
    char *title = line != NULL && begins(line, "# ") ? line + 2 : NULL;
    char *id = title != NULL ? strsep(&title, ":") : NULL;
    if (title == NULL || *trimmed(title) == '\0')
        return REFUSE(r, "the first line is '# ID: title'");
    id = trimmed(id);
    if (strlen(id) != 3 || id[0] < 'A' || id[0] > 'Z' || strspn(id + 1, "0123456789") != 2)
        return REFUSE(r, "the id '%.40s' is not a capital and two digits", id);
    const char *name = strrchr(r->file, '/');
    name = name != NULL ? name + 1 : r->file;
    if (strlen(name) < 6 || strncmp(name, id, 3) != 0 || strcmp(name + 3, ".md") != 0)
        return REFUSE(r, "the id %s is not the file's name", id);
    r->page->id = mem_copy_string(id);
    r->page->title = mem_copy_string(trimmed(title));
    return 0;
}

/* Whether what ends the connection stands at the end of a choice, in the last block. */
static bool ends_last(const struct page_step *step, bool last_step)
{
    for (size_t i = 0; i < step->choice_count; i++)
        for (size_t j = 0; j < step->choices[i].count; j++) {
            enum page_item_kind kind = step->choices[i].items[j].kind;
            bool last = last_step && j + 1 == step->choices[i].count;
            if ((kind == ITEM_IN_SYNC || kind == ITEM_UNHEARD) && !last)
                return false;
        }
    return true;
}

/* A variant that can decide nothing, or whose answers can't be told apart, is a mistake. */
static int check_variant(struct reader *r, const struct page_variant *variant)
{
    unsigned everywhere = 0;
    r->line = variant->line;
    for (size_t i = 0; i < variant->count; i++)
        everywhere += variant->steps[i].split == SPLIT_EVERYWHERE;
    if (variant->count == 0 || !variant->steps[variant->count - 1].expects)
        return REFUSE(r, "'%s' does not end with what is expected", variant->title);
    for (size_t i = 0; i < variant->count; i++)
        if (!ends_last(&variant->steps[i], i + 1 == variant->count && variant->times == 1))
            return REFUSE(r, "'%s': in sync and unheard end the connection; they stand last",
                          variant->title);
    return everywhere > 1 ? REFUSE(r, "'%s' splits two blocks everywhere", variant->title) : 0;
}

static int check_page(struct reader *r, unsigned given)
{
    const struct page *page = r->page;
    if (given != HEAD_NEEDED)
        return REFUSE(r, "the page needs '- level:', '- source:' and '- gate:'");
    if (page->why == NULL)
        return REFUSE(r, "the page has no prose that says why");
    if (page->fault == NULL && page->count == 0)
        return REFUSE(r, "the page sends nothing and names no fault");
    if (page->load && page->fault != NULL)
        return REFUSE(r, "a fault can't be carried out beside load");
    for (size_t i = 0; i < page->count; i++)
        if (check_variant(r, &page->variants[i]) != 0)
            return -EINVAL;
    return 0;
}

int page_read(const char *file, const char *text, struct page *page, struct err *err)
{
    *page = (struct page){0};
    struct reader r = {.file = file, .page = page, .err = err};
    char *copy = mem_copy_string(text);
    char *at = copy;
    unsigned given = 0;
    bool first_paragraph = true;
    int status = read_title(&r, next_line(&r, &at));
    for (char *line; status == 0 && (line = next_line(&r, &at)) != NULL;) {
        if (begins(line, "```"))
            status = read_block(&r, line, &at);
        else if (begins(line, "## "))
            add_variant(&r, trimmed(line + 3));
        else if (begins(line, "- times:") && page->count > 0)
            status = read_times(&r, trimmed(line + 8));
        else if (begins(line, "- ") && page->why == NULL)
            status = read_head_line(&r, line, &given);
        else if (*line != '\0' && first_paragraph)
            extend(&page->why, " ", trimmed(line));
        first_paragraph = first_paragraph && (page->why == NULL || *line != '\0');
    }
    if (status == 0)
        status = check_page(&r, given);
    free(copy);
    if (status != 0)
        page_free(page);
    return status;
}

static void free_step(struct page_step *step)
{
    for (size_t i = 0; i < step->token_count; i++)
        free(step->tokens[i].bytes);
    for (size_t i = 0; i < step->choice_count; i++) {
        for (size_t j = 0; j < step->choices[i].count; j++)
            free(step->choices[i].items[j].text);
        free(step->choices[i].items);
    }
    free(step->tokens);
    free(step->choices);
    free(step->text);
}

void page_free(struct page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        for (size_t j = 0; j < page->variants[i].count; j++)
            free_step(&page->variants[i].steps[j]);
        free(page->variants[i].steps);
        free(page->variants[i].title);
    }
    free(page->variants);
    free(page->id);
    free(page->title);
    free(page->source);
    free(page->fault);
    free(page->why);
    *page = (struct page){0};
}

/* ---- the folder */

static int is_page(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 3 && entry->d_name[0] != '.' && strcmp(entry->d_name + size - 3, ".md") == 0 &&
           strcmp(entry->d_name, "README.md") != 0;
}

static int read_one(const char *folder, const char *name, struct page_list *list, struct err *err)
{
    char *path = mem_format("%s/%s", folder, name);
    char *text = NULL;
    size_t size;
    struct page page;
    int status =
        file_read(path, path, "a page is a text (judge/page.h)", PAGE_MAX_BYTES, &text, &size, err);
    if (status == 0 && strlen(text) != size)
        status = err_set(err, EINVAL, "%s: holds a NUL byte; this is no text", path);
    if (status == 0)
        status = page_read(path, text, &page, err);
    if (status == 0) {
        list->items = mem_grow(list->items, list->count + 1, sizeof *list->items);
        list->items[list->count++] = page;
    }
    free(text);
    free(path);
    return status;
}

int page_list_read(const char *folder, struct page_list *list, struct err *err)
{
    struct dirent **names = NULL;
    *list = (struct page_list){0};
    int count = scandir(folder, &names, is_page, alphasort);
    int status = count > 0 ? 0
                           : err_set(err, ENOENT,
                                     "%s: no pages of the contract there; --root names the folder "
                                     "that holds tests/contract/",
                                     folder);
    for (int i = 0; i < count; i++) {
        if (status == 0)
            status = read_one(folder, names[i]->d_name, list, err);
        free(names[i]);
    }
    free(names);
    if (status != 0)
        page_list_free(list);
    return status;
}

void page_list_free(struct page_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        page_free(&list->items[i]);
    free(list->items);
    *list = (struct page_list){0};
}
