#include "server/tools/access.h"
namespace clerestory { CallAccesses AccessesOf(absl::string_view, absl::string_view, absl::string_view, const ToolAccess&) { return {}; } }
