// The files of tools/timeline/, put into the program by CMake
// (cmake/embed_text.cmake).
#ifndef COLDSTREAM_TOOLS_TIMELINE_ASSETS_H_
#define COLDSTREAM_TOOLS_TIMELINE_ASSETS_H_

#include <string_view>

namespace coldstream {

extern const std::string_view kTimelineHtml;
extern const std::string_view kTimelineStyle;
extern const std::string_view kTimelineScript;

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_TIMELINE_ASSETS_H_
