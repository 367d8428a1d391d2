// One HTML page that shows a Timeline; it needs nothing beside itself.
//
// The page is tools/timeline/: a template, its style and its scripts. Names are
// escaped, so whatever they hold is shown and never run.
#ifndef COLDSTREAM_TOOLS_TIMELINE_PAGE_H_
#define COLDSTREAM_TOOLS_TIMELINE_PAGE_H_

#include <string>
#include <string_view>

#include "tools/timeline.h"
#include "tools/timeline_summary.h"

namespace coldstream {

// `title`: of the page, any text.
std::string TimelinePage(const Timeline& timeline,
                         const TimelineSummary& summary,
                         std::string_view title);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_TIMELINE_PAGE_H_
