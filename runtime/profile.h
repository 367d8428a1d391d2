// What was measured before, so that it need not be measured again: one small
// file for the user, shared by all runs.
//
//   Profile profile = Profile::Load(ProfilePlace::FromEnvironment());
//   if (const DiskRecord* disk = profile.FindDisk(key)) ...
//   profile.PutDisk(key, {...});
//   const ProfileSave saved = profile.Save();
//   if (!saved.note.empty()) PrintWarning(saved.note);
//
// A profile is a convenience: whatever is wrong with it, a run goes on without
// it. Load never fails and has at most one warning; Save never fails either.
// A file that we did not write, or that a newer version wrote, is left alone; a
// damaged one of ours is replaced at the next Save, which says so.
// Save merges: entries that another process has written since Load stay.
// Thread-safety: one caller at a time on an object; any number of processes.
#ifndef COLDSTREAM_RUNTIME_PROFILE_H_
#define COLDSTREAM_RUNTIME_PROFILE_H_

#include <string>

#include "runtime/profile_data.h"

namespace coldstream {

// Where a profile lies, or why there is none.
struct ProfilePlace {
  std::string path;    // empty: there is none
  std::string absent;  // then the reason; empty if switched off
  // In our own folder, where any damaged file is ours.
  bool ours = false;

  // COLDSTREAM_PROFILE, a file or "off"; else $XDG_CACHE_HOME/coldstream/
  // profile.json, else ~/.cache/coldstream/profile.json. As the XDG base
  // directory specification has it, folders that are not absolute do not count.
  static ProfilePlace FromEnvironment();
};

struct ProfileSave {
  bool written = false;
  // One line worth showing: why it was not written, or what was replaced.
  std::string note;
};

class Profile {
 public:
  static Profile Load(const ProfilePlace& place);

  const std::string& path() const { return place_.path; }
  const std::string& warning() const { return warning_; }
  const ProfileData& data() const { return data_; }

  // Null where nothing is known. Valid until the next Put or Save.
  const DiskRecord* FindDisk(const std::string& disk_key) const;
  const ComputeRecord* FindCompute(const std::string& compute_key) const;
  // Of the entries for this disk, model and thread count, the one whose budget
  // is nearest, if within a sixteenth of it: a budget taken from what is free
  // differs a little every time.
  const TunedSettings* FindTuned(const TunedKey& key) const;

  // In memory until Save. An empty date becomes the present one.
  void PutDisk(const std::string& disk_key, DiskRecord record);
  void PutCompute(const std::string& compute_key, ComputeRecord record);
  void PutTuned(const TunedKey& key, TunedSettings settings);

  // Does nothing, successfully, if nothing was put since the last one.
  ProfileSave Save();

 private:
  explicit Profile(ProfilePlace place) : place_(std::move(place)) {}
  Status Write(std::string* note);

  ProfilePlace place_;
  std::string warning_;
  ProfileData data_;  // as loaded, with what was put
  ProfileData put_;   // since the last Save
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PROFILE_H_
