#include "serving/server/generation_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/obs/log.h"
#include "serving/protocol/chat_reply.h"

namespace tandem::server {
namespace {

std::string reason_name(const runtime::Finish& finish, const std::optional<std::string>& stop) {
  return finish.reason == runtime::FinishReason::kLength && !stop ? "length" : "stop";
}

bool needs_logprobs(const protocol::GenerationTask& task) {
  return task.sampling.n_logprobs >= 0;
}

}  // namespace

void JobSet::add(const std::shared_ptr<GenerationJob>& job) {
  const std::lock_guard lock(mutex_);
  jobs_.emplace(job.get(), job);
}

void JobSet::remove(GenerationJob* job) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(job);
}

std::vector<std::shared_ptr<GenerationJob>> JobSet::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<GenerationJob>> found;
  for (const auto& [key, weak] : jobs_) {
    if (auto job = weak.lock()) {
      found.push_back(std::move(job));
    }
  }
  return found;
}

void JobSet::tick() {
  for (const auto& job : all()) {
    job->tick();
  }
}

void JobSet::end_all(const Status& why) {
  for (const auto& job : all()) {
    job->end(why);
  }
}

GenerationJob::GenerationJob(http::ExchangePtr exchange, PreparedTask prepared,
                             std::unique_ptr<protocol::Reply> reply, const PrepareParts& prepare,
                             const JobParts& parts, std::string id, std::string owner)
    : exchange_(std::move(exchange)),
      prepared_(std::move(prepared)),
      reply_(std::move(reply)),
      prepare_(prepare),
      parts_(parts),
      id_(std::move(id)),
      owner_(std::move(owner)),
      started_us_(parts.clock.now_us()),
      last_sent_us_(started_us_) {}

GenerationJob::~GenerationJob() {
  parts_.jobs.remove(this);
}

Status GenerationJob::submit_all() {
  for (int i = 0; i < prepared_.task.n; ++i) {
    Choice choice;
    text::StreamOptions options = prepared_.stream;
    options.call_id_prefix = fmt::format("call_{}_{}_", id_.substr(id_.find_first_of("-_") + 1), i);
    choice.decoder = std::make_unique<text::StreamDecoder>(prepare_.tokenizer, std::move(options));
    const auto index = static_cast<std::size_t>(i);
    const auto sink = [self = shared_from_this(), index](runtime::GenerationEvent event) {
      self->exchange_->post(
          [self, index, event = std::move(event)] { self->on_event(index, event); });
    };
    TANDEM_ASSIGN(choice.sequence,
                  parts_.engine.submit(engine_request(prepared_, i, id_, prepare_), sink));
    choices_.push_back(std::move(choice));
  }
  return ok_status();
}

void GenerationJob::start(http::Headers headers) {
  parts_.jobs.add(shared_from_this());
  headers_ = std::move(headers);
  const Status submitted = submit_all();
  if (!submitted.ok()) {
    over_ = true;
    cancel_all();
    const protocol::ApiError error = protocol::to_api_error(submitted);
    http::Response response;
    response.status = error.http_status;
    response.headers = headers_;
    if (error.retry_after_s) {
      response.headers.emplace_back("Retry-After", std::to_string(*error.retry_after_s));
    }
    response.body = json::dump(reply_->error_body(error));
    parts_.metrics.response(response.status);
    exchange_->respond(std::move(response));
    return;
  }
  exchange_->on_disconnect([self = shared_from_this()] {
    if (!std::exchange(self->over_, true)) {
      obs::log_info("{} client left after {} ms", self->id_,
                    (self->parts_.clock.now_us() - self->started_us_) / 1000);
      self->parts_.metrics.aborted();
      self->charge();
      self->cancel_all();
    }
  });
  if (prepared_.task.stream) {
    parts_.metrics.response(200);
    http::Headers all = headers_;
    all.emplace_back("Cache-Control", "no-cache");
    exchange_->begin_stream(std::move(all));
    send(reply_->begin(static_cast<std::int64_t>(prepared_.prompt.size())));
  }
}

void GenerationJob::tick() {
  if (!prepared_.task.stream) {
    return;
  }
  exchange_->post([self = shared_from_this()] {
    const TimeUs now = self->parts_.clock.now_us();
    if (!self->over_ && now - self->last_sent_us_ >= self->parts_.heartbeat_us) {
      self->send(self->reply_->heartbeat());
    }
  });
}

void GenerationJob::end(const Status& why) {
  exchange_->post([self = shared_from_this(), why] {
    if (!self->over_) {
      self->cancel_all();
      self->fail(protocol::to_api_error(why));
    }
  });
}

void GenerationJob::on_event(std::size_t index, const runtime::GenerationEvent& event) {
  if (over_ || choices_[index].done) {
    return;
  }
  if (!event.tokens.empty()) {
    note_arrival();
    feed(index, event.tokens);
  }
  if (event.finish) {
    finish_choice(index, *event.finish);
  }
}

void GenerationJob::note_arrival() {
  const TimeUs now = parts_.clock.now_us();
  if (last_arrival_us_ < 0) {
    parts_.metrics.first_token(now - started_us_);
  } else {
    parts_.metrics.next_token(now - last_arrival_us_);
  }
  last_arrival_us_ = now;
}

void GenerationJob::feed(std::size_t index, const std::vector<runtime::TokenOutput>& tokens) {
  Choice& choice = choices_[index];
  std::vector<text::StreamEvent> events;
  std::vector<runtime::TokenOutput> content;  // log-probabilities are the content's (api.md 3.7)
  for (const runtime::TokenOutput& output : tokens) {
    const bool was_content = choice.decoder->channel() == text::StreamChannel::kContent;
    std::vector<text::StreamEvent> more = choice.decoder->feed(output.token);
    const bool is_content = choice.decoder->channel() == text::StreamChannel::kContent;
    if (needs_logprobs(prepared_.task) && was_content && is_content &&
        !prepare_.tokenizer.is_special(output.token)) {
      content.push_back(output);
    }
    events.insert(events.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
    if (choice.decoder->stopped()) {
      break;
    }
  }
  emit(index, events, content);
  if (choice.decoder->stopped() && !choice.done) {
    parts_.engine.cancel(choice.sequence);
  }
}

void GenerationJob::emit(std::size_t index, const std::vector<text::StreamEvent>& events,
                         std::span<const runtime::TokenOutput> tokens) {
  for (const text::StreamEvent& event : events) {
    if (event.kind == text::StreamEvent::Kind::kStop) {
      choices_[index].stop = event.text;
    } else if (event.kind == text::StreamEvent::Kind::kMalformed) {
      obs::log_warning("{} malformed tool markup: {}", id_, event.text);
    }
  }
  if (!events.empty() || !tokens.empty()) {
    send(reply_->update({static_cast<int>(index), events, tokens}));
  }
}

void GenerationJob::finish_choice(std::size_t index, const runtime::Finish& finish) {
  Choice& choice = choices_[index];
  const bool stopped = choice.decoder->stopped();
  if (finish.reason == runtime::FinishReason::kError ||
      (finish.reason == runtime::FinishReason::kCancelled && !stopped)) {
    cancel_all();
    fail(protocol::to_api_error(finish.error.ok() ? unavailable("the server is stopping")
                                                  : finish.error));
    return;
  }
  emit(index, choice.decoder->finish(), {});
  choice.done = true;
  protocol::ChoiceEnd end;
  end.choice = static_cast<int>(index);
  end.reason = stopped ? runtime::FinishReason::kStop : finish.reason;
  end.stop = choice.stop;
  end.usage = finish.usage;
  if (stopped) {
    end.usage.completion_tokens = std::min(
        end.usage.completion_tokens, static_cast<std::int64_t>(choice.decoder->tokens_taken()));
  }
  protocol::add_usage(usage_, end.usage);
  parts_.metrics.finished(reason_name(finish, choice.stop));
  send(reply_->end_choice(end));
  if (++n_done_ == choices_.size()) {
    this->finish();
  }
}

void GenerationJob::finish() {
  over_ = true;
  charge();
  const TimeUs took = parts_.clock.now_us() - started_us_;
  parts_.metrics.whole_request(took);
  obs::log_info("{} done: {} prompt tokens, {} cached, {} generated, {} ms", id_,
                usage_.prompt_tokens, usage_.cached_tokens, usage_.completion_tokens, took / 1000);
  if (prepared_.task.stream) {
    send(reply_->finish());
    exchange_->end_stream();
    return;
  }
  reply_->finish();
  http::Response response;
  response.headers = headers_;
  response.body = json::dump(reply_->body());
  parts_.metrics.response(200);
  exchange_->respond(std::move(response));
}

void GenerationJob::fail(const protocol::ApiError& error) {
  over_ = true;
  charge();
  parts_.metrics.aborted();
  obs::log_warning("{} failed: {}", id_, error.message);
  if (prepared_.task.stream) {
    send(reply_->fail(error));
    exchange_->end_stream(false);
    return;
  }
  reply_->fail(error);
  http::Response response;
  response.status = error.http_status;
  response.headers = headers_;
  response.body = json::dump(reply_->error_body(error));
  parts_.metrics.response(response.status);
  exchange_->respond(std::move(response));
}

void GenerationJob::send(std::string frames) {
  if (prepared_.task.stream && !frames.empty()) {
    last_sent_us_ = parts_.clock.now_us();
    exchange_->write(std::move(frames));
  }
}

// What the request cost its key, however it ended.
void GenerationJob::charge() {
  std::size_t tokens = prepared_.prompt.size();
  for (const Choice& choice : choices_) {
    tokens += choice.decoder->tokens_taken();
  }
  parts_.limiter.charge(owner_, static_cast<std::int64_t>(tokens));
}

void GenerationJob::cancel_all() {
  for (const Choice& choice : choices_) {
    if (!choice.done) {
      parts_.engine.cancel(choice.sequence);
    }
  }
}

}  // namespace tandem::server
