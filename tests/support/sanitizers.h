// Whether this is a build with AddressSanitizer or ThreadSanitizer, for tests
// that must take smaller inputs or cannot see the allocator there:
// COLDSTREAM_SANITIZED, defined or not, and kSanitized.
#ifndef COLDSTREAM_TESTS_SUPPORT_SANITIZERS_H_
#define COLDSTREAM_TESTS_SUPPORT_SANITIZERS_H_

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // g++
#define COLDSTREAM_SANITIZED 1
#elif defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COLDSTREAM_SANITIZED 1
#endif
#endif

namespace coldstream {

#ifdef COLDSTREAM_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_SANITIZERS_H_
