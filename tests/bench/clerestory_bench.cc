// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// BuildView against a call that does nothing, side by side: a real server on
// loopback with RocksDB, and in the same process a method that answers with as
// many bytes and has no logic. Rounds alternate, so that a slow minute slows
// both; what counts is the quotient.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/session_service.pb.h"
#include "clerestory/v1/view_service.pb.h"
#include "client/cc/client.h"
#include "server/app/app.h"
#include "server/app/config.h"
#include "server/base/check.h"
#include "server/base/log.h"
#include "server/base/time.h"

namespace clerestory {
namespace {

using SteadyClock = std::chrono::steady_clock;

class SilentLogger final : public Logger {
 public:
  void Write(Severity, absl::string_view,
             const std::vector<LogField>&) override {}
};

// Answers any method with the same bytes.
class NoOpService final : public grpc::CallbackGenericService {
 public:
  explicit NoOpService(std::size_t bytes) : slice_(std::string(bytes, 'x')) {}

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const grpc::Slice& slice) : answer_(&slice, 1) {
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::CANCELLED);
      StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer request_;
    grpc::ByteBuffer answer_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor(slice_);
  }

  grpc::Slice slice_;
};

std::string Message(int index, std::size_t bytes) {
  if (index % 2 == 0) {
    return absl::StrCat(
        R"({"role":"assistant","content":[{"type":"tool_use","id":"t)", index,
        R"(","name":"read_file","input":{"path":"a"}}]})");
  }
  std::string text;
  while (text.size() < bytes) text += "static int value_of(int x);\\n";
  return absl::StrCat(
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t)",
      index - 1, R"(","content":")", text, R"("}]})");
}

// Microseconds that `call` takes.
double Time(const std::function<void()>& call) {
  const auto begin = SteadyClock::now();
  call();
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - begin)
      .count();
}

double Percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(
      part * static_cast<double>(values.size() - 1))];
}

struct Case {
  const char* name;
  int message_count;
  std::size_t view_bytes;
};

constexpr Case kCases[] = {
    {"64 KB, 32 messages", 32, 64 << 10},
    {"512 KB, 128 messages", 128, 512 << 10},
    {"2 MB, 500 messages", 500, 2 << 20},
};
constexpr int kRounds = 40;
constexpr int kCallsPerRound = 10;

// Calls any method with the same request and drops the answer's bytes unparsed,
// as the no-op's are.
class RawCaller {
 public:
  RawCaller(const std::string& target, std::string method)
      : method_(std::move(method)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        target, grpc::InsecureChannelCredentials(), arguments));
  }

  // Returns the size of the answer.
  std::size_t Call(const std::string& request) {
    grpc::ClientContext context;
    const grpc::Slice slice(request);
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ByteBuffer answer;
    grpc::CompletionQueue queue;
    grpc::Status status;
    const auto reader =
        stub_->PrepareUnaryCall(&context, method_, bytes, &queue);
    reader->StartCall();
    reader->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    CLERESTORY_CHECK(status.ok());
    return answer.Length();
  }

 private:
  const std::string method_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

void FillSession(const Client& client, const Case& the_case) {
  v1::CreateSessionRequest create;
  create.set_session_id(absl::StrCat("s", the_case.message_count));
  create.set_format(v1::FORMAT_ANTHROPIC_MESSAGES);
  create.set_model("claude-sonnet-4-6");
  v1::CreateSessionResponse created;
  grpc::ClientContext create_context;
  CLERESTORY_CHECK(
      client.sessions().CreateSession(&create_context, create, &created).ok());
  v1::BuildViewRequest build;
  build.set_session_id(create.session_id());
  const std::size_t bytes = the_case.view_bytes /
                            static_cast<std::size_t>(the_case.message_count) *
                            2;
  for (int i = 0; i < the_case.message_count; ++i) {
    build.add_messages(Message(i, bytes));
  }
  v1::BuildViewResponse built;
  grpc::ClientContext build_context;
  CLERESTORY_CHECK(
      client.views().BuildView(&build_context, build, &built).ok());
}

void RunCase(const Case& the_case, const std::string& target) {
  const Client client(target);
  FillSession(client, the_case);
  v1::BuildViewRequest request;
  request.set_session_id(absl::StrCat("s", the_case.message_count));
  const std::string bytes = request.SerializeAsString();
  RawCaller view(target, "/clerestory.v1.ViewService/BuildView");
  const std::size_t size = view.Call(bytes);

  NoOpService service(size);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  RawCaller no_op(absl::StrCat("127.0.0.1:", port), "/no/op");
  no_op.Call(bytes);

  std::vector<double> views;
  std::vector<double> no_ops;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCallsPerRound; ++i) {
      views.push_back(Time([&] { view.Call(bytes); }));
    }
    for (int i = 0; i < kCallsPerRound; ++i) {
      no_ops.push_back(Time([&] { no_op.Call(bytes); }));
    }
  }
  std::printf(
      "%-22s %8zu bytes  BuildView p50 %7.0f us p99 %7.0f us  no-op p50 %7.0f "
      "us p99 %7.0f us  quotient p50 %.2f p99 %.2f\n",
      the_case.name, size, Percentile(views, 0.5), Percentile(views, 0.99),
      Percentile(no_ops, 0.5), Percentile(no_ops, 0.99),
      Percentile(views, 0.5) / Percentile(no_ops, 0.5),
      Percentile(views, 0.99) / Percentile(no_ops, 0.99));
  server->Shutdown();
}

int Main() {
  std::string folder =
      (std::filesystem::temp_directory_path() / "bench-XXXXXX").string();
  CLERESTORY_CHECK(mkdtemp(folder.data()) != nullptr);
  Config config;
  config.listen = "127.0.0.1:0";
  config.data_dir = folder;
  // Nothing is to be masked: full views are measured.
  config.policy.mode = Mode::kOff;
  SilentLogger logger;
  {
    const absl::StatusOr<std::unique_ptr<App>> app =
        App::Start(config, Clock::Real(), logger);
    CLERESTORY_CHECK(app.ok());
    for (const Case& the_case : kCases) RunCase(the_case, (*app)->address());
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace clerestory

int main() { return clerestory::Main(); }
