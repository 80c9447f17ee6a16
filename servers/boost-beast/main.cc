// Hello World on Boost.Beast, after the shape of Beast's own asynchronous HTTP examples: a session
// is a chain of completion handlers that keeps itself alive. One thread runs the io_context.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/version.hpp>

extern "C" {
#include "../common/host.h"
#include "../common/server.h"
}

namespace
{

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::literals;
using beast::error_code;
using clock_type = std::chrono::steady_clock;

// tcp::socket and steady_timer as they are by default hold an executor of any type, called through
// a pointer. There is one type here, and naming it lets the compiler see through.
using executor_type = net::io_context::executor_type;
using socket_type = net::basic_stream_socket<net::ip::tcp, executor_type>;
using acceptor_type = net::basic_socket_acceptor<net::ip::tcp, executor_type>;
using timer_type =
    net::basic_waitable_timer<clock_type, net::wait_traits<clock_type>, executor_type>;

constexpr std::uint32_t head_max_bytes = 16 * 1024;
constexpr std::uint64_t body_max_bytes = 1024 * 1024;
constexpr std::size_t buffer_start_bytes = 2 * 1024;
constexpr auto request_timeout = 55s; // from the answer before to a request's last byte
constexpr auto answer_timeout = 30s;
constexpr auto linger_timeout = 2s;
constexpr auto sweep_interval = 5s;
constexpr auto accept_pause = 100ms;

// A body that is read, counted and dropped: Beast's concept Body, without a value.
struct discarded_body {
    struct value_type {
    };
    class reader
    {
      public:
        template <bool IsRequest, class Fields>
        reader(http::header<IsRequest, Fields> &, value_type &)
        {
        }
        void init(boost::optional<std::uint64_t> const &, error_code &ec)
        {
            ec = {};
        }
        template <class Buffers> std::size_t put(Buffers const &buffers, error_code &ec)
        {
            ec = {};
            return beast::buffer_bytes(buffers);
        }
        void finish(error_code &ec)
        {
            ec = {};
        }
    };
};

using request_head = http::request_header<http::fields>;
using request_parser = http::request_parser<discarded_body>;
using response_body = http::span_body<char const>;

std::string_view view(beast::string_view text)
{
    return {text.data(), text.size()};
}

// Formed once a second, not once an answer.
std::string_view date()
{
    static std::time_t made_at = -1;
    static char text[sizeof "Sun, 06 Nov 1994 08:49:37 GMT"];
    std::time_t now = std::time(nullptr);
    if (now != made_at) {
        std::tm utc;
        gmtime_r(&now, &utc);
        std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
        made_at = now;
    }
    return {text, sizeof text - 1};
}

constexpr std::string_view scheme = "http://";

bool is_absolute(std::string_view target)
{
    return target.size() >= scheme.size() &&
           beast::iequals({target.data(), scheme.size()}, {scheme.data(), scheme.size()});
}

// Visible ASCII without a fragment (RFC 3986), a host in the absolute form (RFC 9110, 4.2.1), and *
// for OPTIONS only (RFC 9112, 3.2.4).
bool target_is_valid(std::string_view target, http::verb method)
{
    if (target == "*")
        return method == http::verb::options;
    if (is_absolute(target) && (target.size() == scheme.size() || target[scheme.size()] == '/' ||
                                target[scheme.size()] == '?'))
        return false;
    return std::all_of(target.begin(), target.end(),
                       [](char c) { return c > ' ' && c <= '~' && c != '#'; });
}

bool is_root(std::string_view target)
{
    if (is_absolute(target)) {
        target.remove_prefix(std::min(target.find_first_of("/?", scheme.size()), target.size()));
        if (target.empty())
            return true;
    }
    auto path = target.substr(0, target.find('?'));
    return path == "/" || (path.empty() && !target.empty());
}

// What Beast takes and RFC 9112 does not: a Host that is missing, doubled or malformed (3.2), a
// list of lengths (6.3), Transfer-Encoding in HTTP/1.0 or other than chunked (6.1).
bool fields_are_valid(request_head const &head)
{
    unsigned hosts = 0;
    for (auto const &field : head) {
        auto value = view(field.value());
        switch (field.name()) {
        case http::field::host:
            if (++hosts > 1 || !host_is_valid(value.data(), value.size()))
                return false;
            break;
        case http::field::content_length:
            if (value.find_first_not_of("0123456789") != value.npos)
                return false;
            break;
        case http::field::transfer_encoding:
            if (head.version() < 11 || !beast::iequals(field.value(), "chunked"))
                return false;
            break;
        default:
            break;
        }
    }
    return hosts == 1 || head.version() < 11;
}

http::status status_of(request_head const &head)
{
    auto target = view(head.target());
    if (!target_is_valid(target, head.method()) || !fields_are_valid(head))
        return http::status::bad_request;
    switch (head.method()) {
    case http::verb::get:
    case http::verb::head:
        return is_root(target) ? http::status::ok : http::status::not_found;
    case http::verb::post:
    case http::verb::put:
    case http::verb::delete_:
    case http::verb::connect:
    case http::verb::options:
    case http::verb::trace:
    case http::verb::patch:
        return http::status::method_not_allowed;
    default:
        return http::status::not_implemented;
    }
}

// The parser lets keep-alive win in HTTP/1.0; close does (RFC 9112, 9.3).
bool says_close(request_head const &head)
{
    auto lines = head.equal_range(http::field::connection);
    return std::any_of(lines.first, lines.second, [](auto const &line) {
        return http::token_list(line.value()).exists("close");
    });
}

// What to answer where the parser gave up. The head has a target once its first line is whole.
http::status status_of(error_code ec, request_head const &head)
{
    if (ec == http::error::header_limit || ec == http::error::buffer_overflow)
        return head.target().empty() ? http::status::uri_too_long
                                     : http::status::request_header_fields_too_large;
    if (ec == http::error::body_limit)
        return http::status::payload_too_large;
    return http::status::bad_request;
}

std::string_view body_of(http::status status)
{
    switch (status) {
    case http::status::ok:
        return "Hello World\n";
    case http::status::not_found:
        return "Not Found\n";
    case http::status::method_not_allowed:
        return "Method Not Allowed\n";
    case http::status::not_implemented:
        return "Not Implemented\n";
    case http::status::uri_too_long:
        return "URI Too Long\n";
    case http::status::payload_too_large:
        return "Payload Too Large\n";
    case http::status::request_header_fields_too_large:
        return "Request Header Fields Too Large\n";
    default:
        return "Bad Request\n";
    }
}

using list_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

class session : public list_hook, public std::enable_shared_from_this<session>
{
  public:
    explicit session(socket_type socket) : socket_(std::move(socket)), buffer_(head_max_bytes)
    {
        buffer_.reserve(buffer_start_bytes);
    }

    void run()
    {
        read_head();
    }

    // What is under way then ends with an error, and the session with it.
    void close_if_late(clock_type::time_point now)
    {
        error_code ec;
        if (now > deadline_)
            socket_.close(ec);
    }

  private:
    template <class Method> auto then(Method method)
    {
        return beast::bind_front_handler(method, shared_from_this());
    }

    void read_head()
    {
        deadline_ = clock_type::now() + request_timeout;
        parser_.emplace();
        parser_->header_limit(head_max_bytes);
        parser_->body_limit(body_max_bytes);
        http::async_read_header(socket_, buffer_, *parser_, then(&session::on_head));
    }

    void on_head(error_code ec, std::size_t)
    {
        if (ec)
            return refuse(ec);
        request_head const &head = parser_->get();
        status_ = status_of(head);
        if (status_ == http::status::bad_request)
            return answer(false);
        // Before the body: a trailer may not change it.
        keep_ = parser_->keep_alive() && (head.version() >= 11 || !says_close(head));
        if (parser_->is_done())
            return answer(keep_);
        if (head.version() >= 11 && beast::iequals(head[http::field::expect], "100-continue"))
            net::async_write(socket_, net::buffer("HTTP/1.1 100 Continue\r\n\r\n"sv),
                             then(&session::on_continue));
        else
            read_body();
    }

    void on_continue(error_code ec, std::size_t)
    {
        if (!ec)
            read_body();
    }

    void read_body()
    {
        http::async_read(socket_, buffer_, *parser_, then(&session::on_body));
    }

    void on_body(error_code ec, std::size_t)
    {
        if (ec)
            return refuse(ec);
        answer(keep_);
    }

    // Errors of HTTP are answered; after the end, a reset or a timeout there is nobody to tell.
    void refuse(error_code ec)
    {
        if (ec.category() != make_error_code(http::error::bad_method).category() ||
            ec == http::error::end_of_stream || ec == http::error::partial_message)
            return;
        status_ = status_of(ec, parser_->get());
        answer(false);
    }

    void answer(bool keep)
    {
        request_head const &head = parser_->get();
        bool is_head = head.method() == http::verb::head;
        auto body = body_of(status_);

        keep_ = keep;
        response_.emplace(status_, 11);
        response_->set(http::field::content_type, "text/plain");
        response_->set(http::field::date, beast::string_view(date().data(), date().size()));
        if (status_ == http::status::method_not_allowed)
            response_->set(http::field::allow, "GET, HEAD");
        if (!keep)
            response_->set(http::field::connection, "close");
        else if (head.version() < 11)
            response_->set(http::field::connection, "keep-alive");
        response_->body() = {body.data(), body.size()};
        response_->prepare_payload();

        deadline_ = clock_type::now() + answer_timeout;
        serializer_.emplace(*response_);
        if (is_head)
            http::async_write_header(socket_, *serializer_, then(&session::on_answered));
        else
            http::async_write(socket_, *serializer_, then(&session::on_answered));
    }

    void on_answered(error_code ec, std::size_t)
    {
        if (ec)
            return;
        if (keep_)
            return read_head();
        deadline_ = clock_type::now() + linger_timeout;
        socket_.shutdown(socket_type::shutdown_send, ec);
        buffer_.clear();
        linger();
    }

    // Closing with input unread resets the connection, and the answer may be lost (RFC 9112, 9.6).
    void linger()
    {
        socket_.async_read_some(buffer_.prepare(buffer_start_bytes), then(&session::on_linger));
    }

    void on_linger(error_code ec, std::size_t)
    {
        if (!ec)
            linger();
    }

    socket_type socket_;
    beast::flat_buffer buffer_;
    std::optional<request_parser> parser_; // made anew for each request, as Beast asks
    std::optional<http::response<response_body>> response_;
    std::optional<http::response_serializer<response_body>> serializer_;
    clock_type::time_point deadline_;
    http::status status_ = http::status::ok;
    bool keep_ = true;
};

class server
{
  public:
    explicit server(int fd)
        : acceptor_(context_), timer_(context_), pause_(context_), signals_(context_, SIGTERM)
    {
        acceptor_.assign(net::ip::tcp::v4(), fd);
    }

    void run()
    {
        signals_.async_wait([this](error_code, int) { context_.stop(); });
        accept();
        sweep();
        context_.run();
    }

  private:
    void accept()
    {
        acceptor_.async_accept([this](error_code ec, socket_type socket) {
            if (ec && ec != net::error::connection_aborted)
                return rest();
            if (!ec) {
                auto accepted = std::make_shared<session>(std::move(socket));
                sessions_.push_back(*accepted);
                accepted->run();
            }
            accept();
        });
    }

    // Out of descriptors or memory: accept would fail again at once.
    void rest()
    {
        pause_.expires_after(accept_pause);
        pause_.async_wait([this](error_code ec) {
            if (!ec)
                accept();
        });
    }

    void sweep()
    {
        timer_.expires_after(sweep_interval);
        timer_.async_wait([this](error_code ec) {
            if (ec)
                return;
            auto now = clock_type::now();
            for (auto &each : sessions_)
                each.close_if_late(now);
            sweep();
        });
    }

    // Stands before the context: sessions live in its handlers, and leave the list when it goes.
    boost::intrusive::list<session, boost::intrusive::constant_time_size<false>> sessions_;
    net::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE}; // one thread: no locks
    acceptor_type acceptor_;
    timer_type timer_, pause_;
    net::basic_signal_set<executor_type> signals_;
};

} // namespace

int main(int argc, char **argv)
{
    char version[64];
    std::snprintf(version, sizeof version, "Boost %d.%d.%d, Beast %d", BOOST_VERSION / 100000,
                  BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100, BOOST_BEAST_VERSION);
    server_args args;
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    server(server_listen(&args)).run();
}
