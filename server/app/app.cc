// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/app.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/app/config.h"
#include "server/app/file_watch.h"
#include "server/app/refresh_metrics.h"
#include "server/base/executor.h"
#include "server/base/limits.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/metrics/exporter.h"
#include "server/metrics/server_metrics.h"
#include "server/policy/policy.h"
#include "server/rpc/methods.h"
#include "server/store/memory/memory_store.h"
#include "server/store/rocks/rocks_store.h"
#include "server/store/session_store.h"
#include "server/tokens/class_token_counter.h"
#include "server/yaml/problem.h"
#include "server/yaml/scalar.h"

namespace clerestory {
namespace {

absl::StatusOr<std::unique_ptr<SessionStore>> OpenStore(const Config& config) {
  if (config.store == "memory") return std::make_unique<MemoryStore>();
  return RocksStore::Open({.path = config.data_dir});
}

// Passes gRPC's own errors to our log, which is JSON throughout.
void LogGrpc(gpr_log_func_args* args) {
  if (args->severity != GPR_LOG_SEVERITY_ERROR) return;
  Logger::Stderr().Write(Severity::kWarning, "grpc",
                         {{"message", std::string(args->message)}});
}

// How long callers are told that the server is about to stop.
constexpr std::int64_t kFarewellMicros = 300'000;

// `listen` with the port that was taken in place of its own.
std::string WithPort(absl::string_view listen, int port) {
  if (absl::StartsWith(listen, "unix:")) return std::string(listen);
  return absl::StrCat(listen.substr(0, listen.rfind(':') + 1), port);
}

}  // namespace

App::App(const Config& config, const Clock& clock, Logger& logger,
         std::unique_ptr<SessionStore> store)
    : config_(config),
      logger_(logger),
      store_(std::move(store)),
      engine_(*store_, ClassTokenCounter(),
              {.policy = config_.policy,
               .cache_bytes_max = config_.cache_bytes,
               .metrics = &metrics_,
               .logger = &logger_}),
      files_({.policy_dir = config_.policy_dir,
              .prices_file = config_.prices_file,
              .load_prices =
                  [this](absl::string_view file, absl::string_view text,
                         std::vector<Problem>& problems) {
                    LoadPrices(file, text, problems);
                  }},
             engine_.policies(), clock, logger_),
      executor_(
          std::make_unique<Executor>(static_cast<int>(config_.worker_threads))),
      context_{.engine = engine_,
               .executor = *executor_,
               .clock = clock,
               .logger = logger_,
               .metrics = metrics_,
               .tenant = config_.tenant,
               .development = config_.development},
      session_service_(context_),
      history_service_(context_),
      view_service_(context_),
      policy_service_(context_),
      report_service_(context_) {}

absl::StatusOr<std::unique_ptr<App>> App::Start(const Config& config,
                                                const Clock& clock,
                                                Logger& logger) {
  CLERESTORY_ASSIGN_OR_RETURN(std::unique_ptr<SessionStore> store,
                              OpenStore(config));
  std::unique_ptr<App> app(new App(config, clock, logger, std::move(store)));

  CLERESTORY_RETURN_IF_ERROR(app->LoadPolicies());
  app->LoadLearned();
  CLERESTORY_RETURN_IF_ERROR(app->ServeMetrics());

  gpr_set_log_function(LogGrpc);
  grpc::EnableDefaultHealthCheckService(true);
  if (config.reflection) {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(config.listen, grpc::InsecureServerCredentials(),
                           &port);
  // Two servers on one port would share its calls without a word.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kRequestBytesMax));
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(&app->session_service_);
  builder.RegisterService(&app->history_service_);
  builder.RegisterService(&app->view_service_);
  builder.RegisterService(&app->policy_service_);
  builder.RegisterService(&app->report_service_);
  app->server_ = builder.BuildAndStart();
  if (app->server_ == nullptr) {
    return FieldError("listen",
                      absl::StrCat("cannot listen on \"", config.listen,
                                   "\"; is another server running there?"));
  }
  app->address_ = WithPort(config.listen, port);
  logger.Write(Severity::kInfo, "serving",
               {{"address", app->address_},
                {"metrics_address",
                 app->exporter_ == nullptr ? "" : app->exporter_->address()},
                {"store", config.store},
                {"development", config.development},
                {"policy", std::string(ModeName(config.policy.mode))},
                {"policy_digest", PolicyDigest(config.policy)},
                {"prices_as_of", FormatDate(app->engine_.prices()->as_of())}});
  return app;
}

App::~App() { Stop(); }

void App::LoadPrices(absl::string_view file, absl::string_view text,
                     std::vector<Problem>& problems) {
  std::optional<PriceBook> book =
      ReadPriceBook(file, text, &BuiltInPrices(), problems);
  if (!book.has_value()) return;
  logger_.Write(Severity::kInfo, "prices_loaded",
                {{"file", std::string(file)},
                 {"as_of", FormatDate(book->as_of())},
                 {"models", static_cast<std::int64_t>(book->models().size())}});
  engine_.SetPrices(std::make_shared<const PriceBook>(*std::move(book)));
}

absl::Status App::ServeMetrics() {
  metrics_.SetBuildInfo(CLERESTORY_VERSION, __VERSION__, config_.store);
  for (const RpcMethod& method : RpcMethods()) metrics_.DeclareRpc(method);
  // Names tenants and tools before others come.
  RefreshMetrics(config_, engine_, files_, metrics_);
  if (config_.metrics_address.empty()) return absl::OkStatus();
  CLERESTORY_ASSIGN_OR_RETURN(
      exporter_,
      MetricsExporter::Start(config_.metrics_address, metrics_, [this] {
        RefreshMetrics(config_, engine_, files_, metrics_);
      }));
  return absl::OkStatus();
}

void App::LoadLearned() {
  const auto report = [this](absl::string_view event,
                             const absl::StatusOr<std::int64_t>& skipped) {
    if (skipped.ok() && *skipped == 0) return;
    logger_.Write(Severity::kWarning, event,
                  {{"skipped", skipped.ok() ? *skipped : -1},
                   {"message", std::string(skipped.status().message())}});
  };
  report("calibrations_lost", engine_.calibrations().Load());
  report("tools_lost", engine_.tools().Load());
}

absl::Status App::LoadPolicies() {
  CLERESTORY_ASSIGN_OR_RETURN(
      const std::int64_t hidden,
      engine_.policies().LoadStored(
          [this](absl::string_view tenant, const absl::Status& why) {
            logger_.Write(Severity::kError, "stored_policy_refused",
                          {{"tenant", std::string(tenant)},
                           {"message", std::string(why.message())}});
          }));
  if (hidden > 0) {
    logger_.Write(Severity::kError, "stored_policies_damaged",
                  {{"skipped", hidden}});
  }
  std::vector<std::string> directories;
  if (!config_.policy_dir.empty()) directories.push_back(config_.policy_dir);
  if (!config_.prices_file.empty()) {
    directories.push_back(DirectoryOf(config_.prices_file));
  }
  if (directories.empty()) return absl::OkStatus();
  CLERESTORY_RETURN_IF_ERROR(files_.Load());
  CLERESTORY_ASSIGN_OR_RETURN(
      std::unique_ptr<FileWatch> watch,
      FileWatch::Start(directories, [this] { files_.Reload(); }));
  const MutexLock lock(watch_mutex_);
  watch_ = std::move(watch);
  // For what changed after it was read and before it was watched.
  watch_->Trigger();
  return absl::OkStatus();
}

void App::Reload() {
  logger_.Write(Severity::kInfo, "reloading",
                {{"policy_dir", config_.policy_dir},
                 {"prices_file", config_.prices_file}});
  const MutexLock lock(watch_mutex_);
  if (watch_ != nullptr) watch_->Trigger();
}

void App::Stop() {
  if (server_ == nullptr) return;
  logger_.Write(Severity::kInfo, "draining",
                {{"drain_seconds", config_.drain_seconds}});
  std::unique_ptr<FileWatch> watch;
  {
    const MutexLock lock(watch_mutex_);
    watch.swap(watch_);
  }
  // Waits for what it reads, without the lock.
  watch.reset();
  server_->GetHealthCheckService()->SetServingStatus(false);
  // A call that meets gRPC's own shutdown is cancelled, which says nothing; one
  // that comes before it hears that it may be tried again.
  context_.draining = true;
  {
    Mutex mutex;
    const MutexLock lock(mutex);
    CondVar().WaitFor(mutex, kFarewellMicros);
  }
  server_->Shutdown(std::chrono::system_clock::now() +
                    std::chrono::seconds(config_.drain_seconds));
  // Every call is finished by the executor before the server can end.
  server_->Wait();
  executor_.reset();
  exporter_.reset();
  server_.reset();
  store_.reset();
  logger_.Write(Severity::kInfo, "stopped", {});
}

}  // namespace clerestory
