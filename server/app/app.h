// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_APP_APP_H_
#define CLERESTORY_SERVER_APP_APP_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/app/config.h"
#include "server/app/file_watch.h"
#include "server/app/policy_files.h"
#include "server/base/executor.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/base/time.h"
#include "server/engine/session_engine.h"
#include "server/metrics/exporter.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call.h"
#include "server/rpc/history_service.h"
#include "server/rpc/policy_service.h"
#include "server/rpc/report_service.h"
#include "server/rpc/session_service.h"
#include "server/rpc/view_service.h"
#include "server/store/session_store.h"

namespace clerestory {

// A running server: the one place that knows which store, clock and counter are
// used.
class App {
 public:
  // Opens the store and starts to serve. REQUIRES: CheckConfig(config) is OK.
  // Errors say what to change: the store's, those of PolicyFiles::Load, or
  // INVALID_ARGUMENT if the address cannot be listened on. `clock` and `logger`
  // must outlive the app.
  static absl::StatusOr<std::unique_ptr<App>> Start(const Config& config,
                                                    const Clock& clock,
                                                    Logger& logger);
  App(const App&) = delete;
  App& operator=(const App&) = delete;
  // As Stop.
  ~App();

  // Where it listens, with the port that it was given.
  const std::string& address() const { return address_; }

  // What was read of the files that may change while it runs.
  PolicyFiles::Counters file_counters() const { return files_.counters(); }

  // Reads the files that may change while it runs again, soon: policies and
  // prices. A bad one changes nothing. Does nothing once it was told to stop.
  // Safe from any thread.
  void Reload() CLERESTORY_EXCLUDES(watch_mutex_);

  // Says to health checks that it is not serving any more, and for a moment to
  // callers that they should go elsewhere; then takes no new calls, lets those
  // under way end for up to `drain_seconds`, and closes the store. Repeating it
  // does nothing. By one thread at a time.
  void Stop() CLERESTORY_EXCLUDES(watch_mutex_);

 private:
  App(const Config& config, const Clock& clock, Logger& logger,
      std::unique_ptr<SessionStore> store);

  // Puts the policies of all tenants and the prices in force, and begins to
  // watch their files.
  absl::Status LoadPolicies() CLERESTORY_EXCLUDES(watch_mutex_);
  // As FileLoader.
  void LoadPrices(absl::string_view file, absl::string_view text,
                  std::vector<Problem>& problems);
  // Serves metrics, if the settings say where.
  absl::Status ServeMetrics();
  // Goes on from what was learned of tokens and tools. What is lost of that is
  // learned again.
  void LoadLearned();

  const Config config_;
  Logger& logger_;
  ServerMetrics metrics_;
  std::unique_ptr<SessionStore> store_;
  SessionEngine engine_;
  PolicyFiles files_;
  // Ends before the files that it has read again; null if there are none.
  Mutex watch_mutex_;
  std::unique_ptr<FileWatch> watch_ CLERESTORY_GUARDED_BY(watch_mutex_);
  // Ends before the engine that its work uses.
  std::unique_ptr<Executor> executor_;
  ServiceContext context_;
  SessionService session_service_;
  HistoryService history_service_;
  ViewService view_service_;
  PolicyService policy_service_;
  ReportService report_service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  // Ends before what it asks; null if there is none.
  std::unique_ptr<MetricsExporter> exporter_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_APP_APP_H_
