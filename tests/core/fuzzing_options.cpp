// How the sanitizers run in the fuzzers; ASAN_OPTIONS and UBSAN_OPTIONS still overrule it.
//
// Most inputs take a hundred small arrays: with a short quarantine, and without the stacks of who took them,
// they stay in the cache. ASAN_OPTIONS=malloc_context_size=30 shows the stacks. Faults end in abort(), after
// which the input is kept.
extern "C" const char *__asan_default_options() {
    return "abort_on_error=1:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=0:"
           "max_malloc_fill_size=64";
}
extern "C" const char *__ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
